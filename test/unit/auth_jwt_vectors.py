#!/usr/bin/env python3
"""Writes auth_jwt_vectors.h: keys and tokens made by PyJWT and cryptography, which Cairn has no part in.

Needs both packages; the header is kept, so that tests need neither: python3 auth_jwt_vectors.py >auth_jwt_vectors.h
"""
import base64, hashlib, hmac, json, sys
import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

NOW = 1700000000
def b64(b): return base64.urlsafe_b64encode(b).rstrip(b"=").decode()
def num(n, size=None): return b64(n.to_bytes(size or (n.bit_length() + 7) // 8, "big"))

RSA, RSA2, WEAK = (rsa.generate_private_key(65537, n) for n in (2048, 2048, 1024))
EC, EC384, ED = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP384R1()), ed25519.Ed25519PrivateKey.generate()

def rsa_jwk(key, kid, **more):
    n = key.public_key().public_numbers()
    return {"kty": "RSA", "kid": kid, "n": num(n.n), "e": num(n.e), **more}
def ec_jwk(key, kid, crv, size):
    n = key.public_key().public_numbers()
    return {"kty": "EC", "kid": kid, "crv": crv, "x": num(n.x, size), "y": num(n.y, size)}
ED_RAW = ED.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
KEYS = [rsa_jwk(RSA, "rsa", use="sig"), rsa_jwk(RSA2, "rs256-only", alg="RS256"), rsa_jwk(WEAK, "weak"), ec_jwk(EC, "ec", "P-256", 32),
        ec_jwk(EC384, "ec384", "P-384", 48), {"kty": "OKP", "kid": "ed", "crv": "Ed25519", "x": b64(ED_RAW)},
        {"kty": "oct", "kid": "oct", "k": b64(b"0123456789abcdef0123456789abcdef")}, rsa_jwk(RSA2, "enc", use="enc"),
        rsa_jwk(RSA, "twice"), rsa_jwk(RSA2, "twice"), {**rsa_jwk(RSA2, "private"), "d": "AQAB"}]
# a point off the curve
KEYS.append({**ec_jwk(EC, "off", "P-256", 32), "y": num(EC.public_key().public_numbers().y ^ 1, 32)})

GOOD = {"iss": "https://id.example.com", "sub": "ada", "aud": "cairn", "iat": NOW, "nbf": NOW, "exp": NOW + 3600, "groups": ["dev", "cairn-admins"],
        "org": "acme", "realm_access": {"roles": ["ops"]}, "projects": ["p1", "p2"]}
def made(key, alg, kid, claims=None, **headers):
    return jwt.encode(claims or GOOD, key, algorithm=alg, headers={"kid": kid, **headers})
def with_(**changes):
    claims = {**GOOD, **changes}
    return {k: v for k, v in claims.items() if v is not None}
def raw(header, payload, sign):
    head = header if isinstance(header, bytes) else json.dumps(header).encode()
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    text = b64(head) + "." + b64(body)
    return text + "." + b64(sign(text.encode()))
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
def rs(text): return RSA.sign(text, padding.PKCS1v15(), hashes.SHA256())
PEM = RSA.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
def hs(text): return hmac.new(PEM, text, hashlib.sha256).digest()
H = {"alg": "RS256", "kid": "rsa", "typ": "JWT"}
es = made(EC, "ES256", "ec")
es_text = es.rsplit(".", 1)[0]

good = {"RS256": made(RSA, "RS256", "rsa"), "PS256": made(RSA, "PS256", "rsa"), "ES256": es, "EdDSA": made(ED, "EdDSA", "ed"),
        "at_jwt": made(RSA, "RS256", "rsa", typ="at+jwt"), "aud_list": made(RSA, "RS256", "rsa", with_(aud=["cairn"])),
        "aud_several_with_azp": made(RSA, "RS256", "rsa", with_(aud=["other", "cairn"], azp="cli")), "no_nbf": made(RSA, "RS256", "rsa", with_(nbf=None)),
        "exp_with_a_fraction": made(RSA, "RS256", "rsa", with_(exp=NOW + 3600.5))}
def jh(**more): return raw({**H, **more}, GOOD, rs)
bad = {
    "alg_none": (raw({"alg": "none", "kid": "rsa"}, GOOD, lambda t: b""), "alg"), "alg_None_with_signature": (raw({"alg": "None", "kid": "rsa"}, GOOD, rs), "alg"),
    "hs256_with_the_public_key": (raw({"alg": "HS256", "kid": "rsa"}, GOOD, hs), "alg"),
    "rs256_that_is_hmac": (raw(H, GOOD, hs), "signature"), "rs256_with_an_empty_signature": (raw(H, GOOD, lambda t: b""), "signature"),
    "ps256_by_a_key_of_rs256": (made(RSA2, "PS256", "rs256-only"), "another algorithm"), "es256_by_an_rsa_key": (raw({**H, "alg": "ES256"}, GOOD, lambda t: b"\x01" * 64), "another algorithm"),
    "rs256_signature_under_ps256": (raw({**H, "alg": "PS256"}, GOOD, rs), "signature"),
    "other_key": (made(RSA2, "RS256", "rsa"), "signature"), "es256_zero": (es_text + "." + b64(b"\0" * 64), "signature"), "es256_short": (es_text + "." + b64(b"\1" * 63), "signature"),
    "es256_der": (es_text + "." + b64(EC.sign(es_text.encode(), ec.ECDSA(hashes.SHA256()))), "signature"), "es256_order": (es_text + "." + b64(b"\xff" * 64), "signature"),
    "eddsa_zero": (made(ED, "EdDSA", "ed").rsplit(".", 1)[0] + "." + b64(b"\0" * 64), "signature"),
    "crit": (jh(crit=["exp"]), "crit"), "jku": (jh(jku="https://evil.example/jwks"), "jku"), "x5u": (jh(x5u="https://evil.example/x"), "x5u"),
    "jwk": (jh(jwk=rsa_jwk(RSA, "rsa")), "jwk"), "x5c": (jh(x5c=["AAAA"]), "x5c"), "zip": (jh(zip="DEF"), "zip"), "typ": (jh(typ="JOSE+JSON"), "typ"),
    "kid_missing": (raw({"alg": "RS256"}, GOOD, rs), "kid"), "kid_newline": (jh(kid="rsa\nx"), "kid"), "kid_nul": (jh(kid="rsa\0"), "kid"), "kid_number": (jh(kid=7), "kid"),
    "kid_long": (jh(kid="k" * 1024), "kid"), "iss": (made(RSA, "RS256", "rsa", with_(iss="https://id.example.com/")), "iss"),
    "iss_missing": (made(RSA, "RS256", "rsa", with_(iss=None)), "iss"), "sub_missing": (made(RSA, "RS256", "rsa", with_(sub=None)), "sub"), "sub_newline": (raw(H, with_(sub="a\nb"), rs), "sub"),
    "sub_list": (raw(H, with_(sub=["ada"]), rs), "sub"), "aud": (made(RSA, "RS256", "rsa", with_(aud="other")), "aud"), "aud_missing": (made(RSA, "RS256", "rsa", with_(aud=None)), "aud"),
    "aud_nested": (made(RSA, "RS256", "rsa", with_(aud=[["cairn"]])), "aud"), "aud_prefix": (made(RSA, "RS256", "rsa", with_(aud="cairn2")), "aud"), "aud_object": (raw(H, with_(aud={"cairn": 1}), rs), "aud"),
    "aud_several_without_azp": (made(RSA, "RS256", "rsa", with_(aud=["other", "cairn"])), "azp"), "aud_several_other_azp": (made(RSA, "RS256", "rsa", with_(aud=["other", "cairn"], azp="other")), "azp"),
    "exp": (made(RSA, "RS256", "rsa", with_(iat=NOW - 7200, nbf=None, exp=NOW - 3600)), "exp"), "exp_missing": (made(RSA, "RS256", "rsa", with_(exp=None)), "exp"), "exp_text": (raw(H, with_(exp="1700003600"), rs), "exp"),
    "exp_huge": (raw(H, json.dumps(GOOD).replace(str(NOW + 3600), "1e999").encode(), rs), "exp"), "exp_negative": (raw(H, with_(exp=-1), rs), "exp"),
    "nbf": (made(RSA, "RS256", "rsa", with_(nbf=NOW + 600)), "nbf"), "iat_future": (made(RSA, "RS256", "rsa", with_(iat=NOW + 600)), "iat"), "iat_missing": (made(RSA, "RS256", "rsa", with_(iat=None)), "iat"),
    "old": (made(RSA, "RS256", "rsa", with_(iat=NOW - 90000)), "older"), "duplicate_claim": (raw(H, json.dumps(GOOD)[:-1].encode() + b',"sub":"eve"}', rs), "twice"),
    "duplicate_header": (raw(b'{"alg":"none","alg":"RS256","kid":"rsa"}', GOOD, rs), "twice"), "array": (raw(H, b'["a"]', rs), "object"), "not_json": (raw(H, b"{", rs), "object"),
    "padding": (good["RS256"] + "=", "signature"), "four_parts": (good["RS256"] + ".x", "three parts"), "two_parts": (good["RS256"].rsplit(".", 1)[0], "three parts"),
    "space": (good["RS256"].replace(".", ". ", 1), "base64url"), "deep": (raw(H, json.dumps(GOOD)[:-1].encode() + b',"d":' + b"[" * 50 + b"]" * 50 + b"}", rs), "object"),
}
unknown = {"kid_path": jh(kid="../../etc/passwd"), "kid_sql": jh(kid="x'OR'1'='1"), "kid_weak": raw({**H, "kid": "weak"}, GOOD, lambda t: WEAK.sign(t, padding.PKCS1v15(), hashes.SHA256())),
           "kid_oct": raw({**H, "kid": "oct"}, GOOD, rs), "kid_twice": made(RSA, "RS256", "twice"), "kid_enc": made(RSA2, "RS256", "enc"), "kid_private": made(RSA2, "RS256", "private"),
           "kid_ec384": raw({"alg": "ES256", "kid": "ec384"}, GOOD, lambda t: b"\1" * 64), "kid_off": made(EC, "ES256", "off")}

def text(s, n=132): return "\n    ".join(json.dumps(s[i:i + n]) for i in range(0, len(s), n)) or '""'
out = ["// Made by auth_jwt_vectors.py with PyJWT %s; all at the time VECTOR_NOW." % jwt.__version__, "#ifndef CAIRN_TEST_AUTH_JWT_VECTORS_H", "#define CAIRN_TEST_AUTH_JWT_VECTORS_H", "",
       f"#define VECTOR_NOW INT64_C({NOW}000)", f"static const char vector_jwks[] =\n    {text(json.dumps({'keys': KEYS}, separators=(',', ':')), 110)};", "struct vector {\n    const char *name, *text, *why;\n};"]
for name, rows in (("good", [(k, v, "") for k, v in good.items()]), ("bad", [(k, *v) for k, v in bad.items()]), ("unknown", [(k, v, "kid") for k, v in unknown.items()])):
    out.append(f"static const struct vector vectors_{name}[] = {{")
    for n, t, w in rows:
        out.append(f'    {{"{n}",\n    {text(t)},\n    "{w}"}},')
    out.append("};")
out += ["", "#endif"]
print("\n".join(out))
