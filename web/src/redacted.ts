// What the server keeps from a role. A value that this reader may not see arrives as a text, whatever its type was: every reader of such a
// value asks here, so that no view takes the text for a list, an object or something that a program said.
import { me } from "./api";

export const NOT_VISIBLE = "not visible to your role";
// A program may write the same word: it is the server's only for a reader from whom values are kept.
export const hidden = (value: unknown): boolean => value === "(redacted)" && me.value?.payloads === false;
// A text for the eye: what is kept back says so.
export const visible = (text: string): string => (hidden(text) ? NOT_VISIBLE : text);
