// A real identity provider (npm oidc-provider) for test/oidc/run: every name has an account, and groups come with the token.
import Provider from "oidc-provider";
const port = Number(process.argv[2]), issuer = `http://127.0.0.1:${port}`;
const provider = new Provider(issuer, {
  clients: [{ client_id: "cli", token_endpoint_auth_method: "none", redirect_uris: [], response_types: [],
              grant_types: ["urn:ietf:params:oauth:grant-type:device_code", "refresh_token"], application_type: "native" }],
  claims: { openid: ["sub"], profile: ["name"], groups: ["groups", "org"] },
  scopes: ["openid", "profile", "offline_access", "groups"],
  conformIdTokenClaims: false,
  features: { deviceFlow: { enabled: true }, revocation: { enabled: true }, devInteractions: { enabled: true } },
  findAccount: (ctx, id) => ({ accountId: id, claims: () => ({ sub: id, name: id, org: "acme", groups: id === "eve" ? [] : ["eng"] }) }),
  ttl: { IdToken: Number(process.argv[3] ?? 3600) },
  rotateRefreshToken: true,
});
provider.listen(port, "127.0.0.1", () => console.log("ready"));
