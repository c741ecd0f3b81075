// The policy of the server lets no text become a script or a script's address. Workers are named by the build, and only those pass.
interface Policy { createScriptURL(url: string): unknown }
const types = (window as unknown as { trustedTypes?: { createPolicy(name: string, rules: { createScriptURL: (url: string) => string }): Policy } }).trustedTypes;
const policy = types?.createPolicy("cairn", {
    createScriptURL: (url) => {
        if (!/^\/assets\/[\w.-]+\.js$/.test(url)) throw new TypeError("not a script of this page: " + url);
        return url;
    },
});
export const scriptUrl = (url: string): unknown => (policy ? policy.createScriptURL(url) : url);
