// Sections that have all words, the best first: a word in the title counts more than one in the text, a whole word more than its begin.
const input = document.getElementById("q"), list = document.getElementById("found"), count = document.getElementById("count");
const SHOWN = 40;

function score(entry, words) {
    const title = (entry[1] + " " + entry[2]).toLowerCase(), text = " " + entry[3] + " ";
    let sum = 0;
    for (const word of words) {
        const here = (title.includes(word) ? 8 : 0) + (text.includes(` ${word} `) ? 3 : text.includes(" " + word) ? 2 : text.includes(word) ? 1 : 0);
        if (!here) return 0;
        sum += here;
    }
    return sum;
}

function show() {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = words.length ? globalThis.cairnIndex.map((entry) => [score(entry, words), entry]).filter(([points]) => points > 0) : [];
    found.sort((a, b) => b[0] - a[0]);
    list.replaceChildren(...found.slice(0, SHOWN).map(([, entry]) => {
        const item = document.createElement("li"), link = document.createElement("a");
        link.href = entry[0];
        link.textContent = entry[1];
        item.append(link);
        if (entry[2]) item.append(" · " + entry[2]);
        return item;
    }));
    count.textContent = words.length ? (found.length > SHOWN ? `${found.length} sections, the first ${SHOWN}` : `${found.length} sections`) : "";
    history.replaceState(null, "", words.length ? "#" + encodeURIComponent(input.value) : location.pathname);
}

input.value = decodeURIComponent(location.hash.slice(1));
input.addEventListener("input", show);
input.focus();
show();
