// What the server keeps from a role. A value that this reader may not see arrives as a text, whatever its type was: every reader of such a
// value asks here, so that no view takes the text for a list, an object or something that a program said.
import { me } from "./api";

export const NOT_VISIBLE = "not visible to your role";
// A program may write the same word: it is the server's only for a reader from whom values are kept.
export const hidden = (value: unknown): boolean => value === "(redacted)" && me.value?.payloads === false;
// A text for the eye: what is kept back says so.
export const visible = (text: string): string => (hidden(text) ? NOT_VISIBLE : text);
// Runs that go on only when a person does something: an answer is asked for, or a step failed for good and is held (a failure that is tried
// again by itself has no cause yet). Who may not see what programs wrote may not ask for causes either; nor retry.
export const needsPerson = (): string => (me.value?.payloads === false ? "substatus=WAITING_APPROVAL" : 'substatus=WAITING_APPROVAL or (substatus=RETRYING and cause!="")');
