import { signal } from "@preact/signals";
import { render } from "preact";

// Whether the server is there: all that can be known before a person has signed in.
const state = signal("asking the server");

async function ask(): Promise<void> {
    try {
        const answer = await fetch("/readyz");
        state.value = answer.ok ? "the server is ready" : "the server is not ready";
    } catch {
        state.value = "the server does not answer";
    }
}

function App() {
    return (
        <main>
            <h1>Cairn</h1>
            <p role="status">{state}</p>
        </main>
    );
}

const app = document.getElementById("app");
if (app) render(<App />, app);
void ask();
