// The editor of documents. It lives in a shadow root, where its styles are adopted sheets: the policy of the page allows no others.
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { json } from "@codemirror/lang-json";
import { yaml } from "@codemirror/lang-yaml";
import { bracketMatching, HighlightStyle, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { type Diagnostic, lintGutter, setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { EditorState } from "@codemirror/state";
import { EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";

export interface Problem { line: number; column: number; message: string; severity: "error" | "warning" }
export interface Editor { set(text: string): void; text(): string; problems(list: Problem[]): void; focus(): void; close(): void }

const look = HighlightStyle.define([
    { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--text)", fontWeight: "550" },
    { tag: [tags.string, tags.content], color: "var(--done)" },
    { tag: [tags.number, tags.bool, tags.null, tags.keyword], color: "var(--running)" },
    { tag: tags.comment, color: "var(--faint)" },
    { tag: [tags.punctuation, tags.separator], color: "var(--muted)" },
]);
const theme = EditorView.theme({
    "&": { color: "var(--text)", backgroundColor: "var(--surface)", height: "100%", fontSize: "12px" },
    "&.cm-focused": { outline: "2px solid var(--focus)", outlineOffset: "-2px" },
    ".cm-content": { fontFamily: "var(--mono)", caretColor: "var(--text)" },
    ".cm-gutters": { backgroundColor: "var(--surface)", color: "var(--faint)", border: "0" },
    ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--hover)" },
    ".cm-cursor": { borderLeftColor: "var(--text)" },
    "&.cm-focused .cm-selectionBackground, .cm-selectionBackground, ::selection": { backgroundColor: "var(--running-bg) !important" },
    ".cm-tooltip": { backgroundColor: "var(--raised)", border: "1px solid var(--line-2)", borderRadius: "6px", fontFamily: "var(--sans)" },
    ".cm-lintRange-error": { backgroundImage: "none", textDecoration: "underline wavy var(--bad)" },
    ".cm-lintRange-warning": { backgroundImage: "none", textDecoration: "underline wavy var(--warn)" },
    ".cm-diagnostic-error": { borderLeft: "3px solid var(--bad)" },
    ".cm-diagnostic-warning": { borderLeft: "3px solid var(--warn)" },
    ".cm-lint-marker": { content: "none", width: "8px", height: "8px", borderRadius: "50%", backgroundColor: "var(--bad)" },
    ".cm-panels": { backgroundColor: "var(--sunken)", color: "var(--text)" },
});

export function open(host: HTMLElement, text: string, changed: (text: string) => void, readOnly: boolean): Editor {
    const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
    root.replaceChildren();
    const view = new EditorView({
        root, parent: root as unknown as Element,
        state: EditorState.create({
            doc: text,
            extensions: [
                lineNumbers(), history(), bracketMatching(), highlightActiveLine(), highlightSelectionMatches(), indentUnit.of("  "), lintGutter(), keymap.of([...defaultKeymap, ...historyKeymap, ...searchKeymap, ...(readOnly ? [] : [indentWithTab])]),
                /^\s*[{[]/.test(text) ? json() : yaml(), syntaxHighlighting(look), theme, EditorState.readOnly.of(readOnly), EditorView.lineWrapping,
                EditorView.contentAttributes.of({ "aria-label": "Document", tabindex: "0" }),
                EditorView.updateListener.of((u) => { if (u.docChanged) changed(u.state.doc.toString()); }),
            ],
        }),
    });
    return {
        set: (next) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: next } }),
        text: () => view.state.doc.toString(),
        problems: (list) => {
            const doc = view.state.doc;
            const marks: Diagnostic[] = list.filter((p) => p.line >= 1 && p.line <= doc.lines).map((p) => {
                const line = doc.line(p.line), from = Math.min(line.to, line.from + Math.max(0, p.column - 1));
                return { from, to: Math.max(from, Math.min(line.to, from + 30)), severity: p.severity, message: p.message };
            });
            view.dispatch(setDiagnostics(view.state, marks));
        },
        focus: () => view.focus(),
        close: () => view.destroy(),
    };
}
