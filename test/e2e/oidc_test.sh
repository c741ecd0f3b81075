#!/usr/bin/env bash
# People of an identity provider, and workers with certificates. The provider is a small one (oidc_provider.py) that also does what none
# should; a real one is asked by `make oidc`.
. "$(dirname "$0")/serve_lib.sh"

provider="$e2e/oidc_provider.py"
now() { date +%s; }
sign() { # KID ALG CLAIMS [HEADER]
    curl -sSf "$(cat idp/issuer)/sign" --data-urlencode "kid=$1" --data-urlencode "alg=$2" --data-urlencode "claims=$3" ${4:+--data-urlencode "header=$4"}
}
# Claims of a good token, changed by a jq expression.
claims() { jq -nc --arg iss "$issuer" --argjson now "$(now)" '{iss: $iss, sub: "ada", aud: "cairn", iat: $now, exp: ($now + 600), groups: ["eng"], org: "acme"}'" | ${1:-.}"; }
make_key() { python3 "$provider" key idp "$@"; }
publish() { jq -sc '{keys: .}' "$@" >idp/jwks.new && mv idp/jwks.new idp/jwks.json; }
has_keys() { [ "$(curl -s -o /dev/null -w '%{http_code}' -H "Authorization: Bearer $probe" "$url/v1/whoami")" = 200 ]; }
keys_read() { probe=$(sign k1 RS256 "$(claims)"); wait_for has_keys; }

# A provider with one key, k1.
begin_provider() {
    mkdir -p idp
    make_key rsa2048 k1 >idp/k1.jwk
    publish idp/k1.jwk
    python3 "$provider" serve idp >idp/out 2>&1 &
    wait_for test -s idp/issuer
    issuer=$(cat idp/issuer)
}
# The same, and a service that trusts it.
begin() {
    begin_provider
    settings "$@"
    serve
    admin=$token
    keys_read
}
settings() {
    mkdir -p "$HOME/.config/cairn"
    cat >"$HOME/.config/cairn/config.toml" <<TOML
[[serve.oidc]]
issuer = "$issuer"
insecure = true
allowPrivate = true
audience = "cairn"
clientId = "cli"
skewSeconds = 0
unknownKeySeconds = 1
${1:-}
[[serve.oidc.grants]]
claim = "groups"
value = "admins"
tenant = "acme"
roles = ["admin"]
[[serve.oidc.grants]]
claim = "groups"
value = "eng"
tenantClaim = "org"
roles = ["engineer"]
[[serve.oidc.grants]]
claim = "groups"
value = "audit"
tenant = "acme"
roles = ["auditor"]
projectsClaim = "projects"
TOML
}
as() { token=$1; ask "${@:2}"; }
refused() { # NAME TOKEN: the stranger gets a 401 that says nothing; the log says why
    as "$2" GET /v1/whoami
    equal "$status" 401 "status of $1"
    equal "$(jq -r .detail body)" 'a token is needed: Authorization: Bearer cairn_...' "what a stranger is told of $1"
}

test_a_person_of_a_provider_is_who_the_claims_say() {
    begin
    as "$(sign k1 RS256 "$(claims)")" GET /v1/whoami
    answers 200
    equal "$(jq -c '[.id, .tenantId, .roles]' body)" "[\"$issuer#ada\",\"acme\",[\"Engineer\"]]" 'who it is'
    [ "$(jq -r .expiresAt body)" != null ] || fail 'it does not say until when'
    as "$(sign k1 PS256 "$(claims '.groups = ["audit"] | .projects = ["p1"]')")" GET /v1/whoami
    equal "$(jq -c '[.roles, .projects]' body)" '[["Auditor"],["p1"]]' 'an auditor'
    # the tenant of the token and no other: a run of acme is not there for others
    as "$(sign k1 RS256 "$(claims)")" POST /v1/runs "{\"runId\":\"r1\",\"document\":$(plan_text p '{"stepId":"a","kind":"shell","with":{"command":"true"}}')}"
    answers 202
    as "$(sign k1 RS256 "$(claims '.org = "other"')")" GET /v1/runs/r1
    answers 404
    as "$(sign k1 RS256 "$(claims)")" GET /v1/runs/r1
    answers 200
    # the audit names issuer and subject
    as "$(sign k1 RS256 "$(claims '.groups = ["admins"]')")" GET '/v1/audit?limit=50'
    answers 200
    jq -e --arg id "$issuer#ada" '[.items[] | select(.actor.id == $id and .actor.type == "user" and .action == "run.start")] | length > 0' body >out || fail "no record names the person: $(head -c 600 body)"
    stop_serving
}

test_other_algorithms_and_rotated_keys() {
    begin
    make_key p256 e1 >idp/e1.jwk; make_key ed25519 d1 >idp/d1.jwk; make_key rsa2048 k2 >idp/k2.jwk
    publish idp/e1.jwk idp/d1.jwk idp/k2.jwk # k1 is gone
    let_in() { as "$1" GET /v1/whoami; [ "$status" = 200 ]; }
    new=$(sign k2 RS256 "$(claims)") asked=$(wc -l <idp/count)
    outlast 1.1 # unknownKeySeconds: now a key that is not known makes the service read the set, and the client comes again
    as "$new" GET /v1/whoami
    answers 503
    code_is AUTHN_KEYS_UNREAD
    has head 'Retry-After: 1'
    read_again() { [ "$(wc -l <idp/count)" -gt "$asked" ]; }
    wait_for read_again
    wait_for let_in "$new"
    let_in "$(sign e1 ES256 "$(claims)")" || fail "ES256: $(cat body)"
    let_in "$(sign d1 EdDSA "$(claims)")" || fail "EdDSA: $(cat body)"
    gone() { as "$1" GET /v1/whoami; [ "$status" = 401 ]; } # 503 while the set is read once more because of it
    wait_for gone "$(sign k1 RS256 "$(claims)")"
    stop_serving
}

test_tokens_that_are_forged_stale_or_strange_open_nothing() {
    begin
    make_key rsa1024 weak >idp/weak.jwk; make_key p384 e384 >idp/e384.jwk; make_key p256 e1 >idp/e1.jwk; make_key rsa2048 evil >idp/evil.jwk
    good=$(claims)
    refused 'alg none' "$(sign k1 none "$good")"
    refused 'alg nOnE' "$(sign k1 none "$good" '{"alg":"nOnE"}')"
    refused 'HS256 with the public key' "$(sign k1 HS256 "$good")"
    refused 'HMAC that calls itself RS256' "$(sign k1 HS256 "$good" '{"alg":"RS256"}')"
    refused 'a key of nobody' "$(sign evil RS256 "$good" '{"kid":"k1"}')"
    refused 'jwk' "$(sign evil RS256 "$good" "{\"kid\":\"k1\",\"jwk\":$(cat idp/evil.jwk)}")"
    refused 'jku' "$(sign evil RS256 "$good" "{\"kid\":\"k1\",\"jku\":\"$issuer/jwks\"}")"
    refused 'x5u' "$(sign k1 RS256 "$good" '{"x5u":"http://127.0.0.1:1/x"}')"
    refused 'crit' "$(sign k1 RS256 "$good" '{"crit":["exp"]}')"
    refused 'kid with a newline' "$(sign k1 RS256 "$good" '{"kid":"k1\nx"}')"
    refused 'kid of 3 KB' "$(sign k1 RS256 "$good" "{\"kid\":\"$(printf 'k%.0s' $(seq 3000))\"}")"
    refused 'zero signature' "$(sign e1 zero "$good" '{"kid":"k1"}')"
    refused 'aud' "$(sign k1 RS256 "$(claims '.aud = "other"')")"
    refused 'aud nested' "$(sign k1 RS256 "$(claims '.aud = [["cairn"]]')")"
    refused 'aud of several without azp' "$(sign k1 RS256 "$(claims '.aud = ["cairn", "x"]')")"
    refused 'iss' "$(sign k1 RS256 "$(claims '.iss += "/"')")"
    refused 'iss of another' "$(sign k1 RS256 "$(claims '.iss = "https://evil.example"')")"
    refused 'exp' "$(sign k1 RS256 "$(claims '.exp = .iat - 1 | .iat -= 60')")"
    refused 'nbf' "$(sign k1 RS256 "$(claims '.nbf = .iat + 300')")"
    refused 'iat' "$(sign k1 RS256 "$(claims '.iat += 300')")"
    stop_serving
    serve; keys_read # guesses are counted by address: the second half begins anew
    refused 'a claim twice' "$(sign k1 RS256 "${good%\}},\"groups\":[\"admins\"]}")"
    refused 'no grant' "$(sign k1 RS256 "$(claims '.groups = ["nobody"]')")"
    refused 'no groups' "$(sign k1 RS256 "$(claims 'del(.groups)')")"
    refused 'no tenant' "$(sign k1 RS256 "$(claims 'del(.org)')")"
    refused 'a tenant that is a path' "$(sign k1 RS256 "$(claims '.org = "../x"')")"
    refused 'no projects' "$(sign k1 RS256 "$(claims '.groups = ["audit"]')")"
    has serve.err 'no grant fits its claims; looked at: groups'
    has serve.err 'groups (missing)'
    has serve.err 'the claim projects is missing'
    as "$(sign k1 RS256 "$(claims ".x = \"$(printf 'x%.0s' $(seq 9000))\"")")" GET /v1/whoami
    answers 431
    stop_serving
}

test_a_flood_of_unknown_keys_is_no_flood_of_fetches() {
    begin 'refreshSeconds = 3600'
    asked=$(wc -l <idp/count) began=$SECONDS
    for i in $(seq 60); do as "$(sign k1 RS256 '{}' "{\"kid\":\"x'; drop table $i --\"}" | sed 's/$//')" GET /v1/whoami; [ "$status" != 200 ] || fail 'let in'; done
    t=$(claims)
    for i in $(seq 60); do as "$(sign k1 RS256 "$t" "{\"kid\":\"../$i\"}")" GET /v1/whoami; [ "$status" != 200 ] || fail 'let in'; done
    [ $(($(wc -l <idp/count) - asked)) -le $((SECONDS - began + 2)) ] || fail "$(wc -l <idp/count) fetches in $((SECONDS - began)) seconds"
    stop_serving
}

test_keys_of_a_provider_that_is_away_are_good_for_a_while() {
    begin 'refreshSeconds = 1
staleSeconds = 3'
    t=$(sign k1 RS256 "$(claims)")
    back() { as "$t" GET /v1/whoami; [ "$status" = 200 ]; }
    wait_for back
    touch idp/away
    expired() { as "$t" GET /v1/whoami; [ "$status" = 401 ]; }
    wait_for expired
    has serve.err 'expired JWKS'
    rm idp/away
    wait_for back
    stop_serving
}

test_key_sets_and_documents_that_are_wrong_are_not_taken() {
    begin 'refreshSeconds = 1
staleSeconds = 600'
    make_key rsa2048 k2 >idp/k2.jwk
    t=$(sign k1 RS256 "$(claims)")
    refuse_set() { : >serve.err; wait_for grep -q "$1" serve.err; as "$t" GET /v1/whoami; answers 200; }
    head -c 1048576 /dev/zero | tr '\0' ' ' >idp/jwks.new; mv idp/jwks.new idp/jwks.json; refuse_set 'too large'
    echo '[]' >idp/jwks.new; mv idp/jwks.new idp/jwks.json; refuse_set 'no list'
    jq '.issuer += "/other"' idp/discovery.json >idp/d.new; cp idp/discovery.json idp/good; mv idp/d.new idp/discovery.json; publish idp/k2.jwk; refuse_set 'another issuer'
    jq '.jwks_uri = "http://localhost:1/jwks"' idp/good >idp/d.new; mv idp/d.new idp/discovery.json; refuse_set 'NOT_ALLOWED'
    # one name for two keys: neither counts
    cp idp/good idp/discovery.json
    jq -c '.kid = "k2"' idp/k1.jwk >idp/double.jwk
    publish idp/k2.jwk idp/double.jwk idp/k1.jwk; : >serve.err; wait_for grep -q '2 keys of an identity provider cannot be used' serve.err
    as "$t" GET /v1/whoami; answers 200
    unknown() { as "$(sign k2 RS256 "$(claims)")" GET /v1/whoami; [ "$status" = 401 ]; }
    wait_for unknown
    stop_serving
}

test_a_provider_that_withdraws_its_keys_is_heard() {
    begin 'refreshSeconds = 1
staleSeconds = 600'
    make_key rsa1024 weak >idp/weak.jwk
    t=$(sign k1 RS256 "$(claims)")
    gone() { as "$t" GET /v1/whoami; [ "$status" = 401 ]; } # 503 while the set is read once more because of it
    back() { as "$t" GET /v1/whoami; [ "$status" = 200 ]; }
    echo '{"keys":[]}' >idp/jwks.new; mv idp/jwks.new idp/jwks.json; wait_for gone
    publish idp/k1.jwk; wait_for back
    publish idp/weak.jwk; wait_for gone
    has serve.err '1 keys of an identity provider cannot be used, 0 can'
    publish idp/k1.jwk; wait_for back
    stop_serving
}

test_a_stream_ends_with_its_token_and_no_token_outlives_its_maker() {
    begin
    t=$(sign k1 RS256 "$(claims '.exp = .iat + 12')") # long enough to be there before it ends
    token=$t
    began=$(now)
    curl -sN --max-time 60 -H "Authorization: Bearer $t" -H 'Accept: text/event-stream' "$url/v1/events" >stream || fail "the stream did not end: $?"
    [ $(($(now) - began)) -le 30 ] || fail 'it took too long'
    has stream 'event: revoked'
    admin_jwt=$(sign k1 RS256 "$(claims '.groups = ["admins"]')")
    as "$admin_jwt" POST /v1/tokens '{"name":"x","roles":["operator"],"expiresAt":"2099-01-01T00:00:00Z"}'
    answers 403
    for none in projects environments; do as "$admin_jwt" POST /v1/tokens "{\"name\":\"x\",\"roles\":[\"operator\"],\"$none\":[]}"; answers 400; done # no names are no limit
    as "$admin_jwt" POST /v1/tokens '{"name":"x","roles":["operator"]}'
    answers 201
    as "$(jq -r .token body)" GET /v1/whoami
    answers 200
    [ "$(jq -r .expiresAt body | date -f - +%s)" -le $(($(now) + 601)) ] || fail "it outlives its maker: $(cat body)"
    stop_serving
}

# A token that a person makes is that person's, and so is one that this token makes.
test_a_person_does_not_agree_with_himself_by_a_token_of_his_own() {
    begin
    ada=$(sign k1 RS256 "$(claims '.groups = ["admins", "eng"]')") bob=$(sign k1 RS256 "$(claims '.sub = "bob" | .groups = ["admins", "eng"]')")
    as "$ada" POST /v1/tokens '{"name":"x","roles":["admin","engineer"]}'; answers 201; minted=$(jq -r .token body)
    as "$minted" POST /v1/tokens '{"name":"y","roles":["admin"]}'; answers 201; again=$(jq -r .token body)
    plan_text etl '{"stepId":"a","kind":"shell","with":{"command":"true"}}' | jq -j . >plan.json
    sha=$(sha256sum plan.json | cut -c1-64)
    as "$minted" PUT "/v1/definitions/etl/versions/$sha" @plan.json; answers 201
    for t in "$minted" "$again" "$ada"; do as "$t" POST "/v1/definitions/etl/versions/$sha:approve" '{}'; answers 403; has body not_author; done
    as "$bob" POST "/v1/definitions/etl/versions/$sha:approve" '{}'; answers 200
    as "$ada" POST /v1/runs "{\"runId\":\"r1\",\"document\":$(plan_text p '{"stepId":"a","kind":"shell","with":{"command":"true"}}')}"; answers 202
    ended() { as "$ada" GET /v1/runs/r1/status; [ "$(jq -r .status body)" = COMPLETED ]; }
    wait_for ended
    for t in "$ada" "$minted" "$again" "$ada"; do as "$t" DELETE '/v1/runs/r1?reason=old'; answers 403; code_is AUTHZ_APPROVAL_REQUIRED; done
    stop_serving; serve; keys_read # whose a token is stays so
    as "$again" DELETE '/v1/runs/r1?reason=old'; answers 403
    as "$bob" DELETE '/v1/runs/r1?reason=old'; answers 204
    # the owner's first token makes tokens for different people
    for name in one two; do as "$admin" POST /v1/tokens "{\"name\":\"$name\",\"tenantId\":\"acme\",\"roles\":[\"admin\"]}"; answers 201; jq -r .token body >"$name"; done
    as "$ada" POST /v1/runs "{\"runId\":\"r2\",\"document\":$(plan_text p '{"stepId":"a","kind":"shell","with":{"command":"true"}}')}"; answers 202
    ended() { as "$ada" GET /v1/runs/r2/status; [ "$(jq -r .status body)" = COMPLETED ]; }
    wait_for ended
    as "$(cat one)" DELETE '/v1/runs/r2?reason=old'; answers 403
    as "$(cat two)" DELETE '/v1/runs/r2?reason=old'; answers 204
    stop_serving
}

test_ways_to_sign_in_are_told_to_everybody() {
    begin
    token=
    ask GET /v1/auth
    answers 200
    equal "$(jq -c '[.methods[] | [.type, .clientId]]' body)" '[["token",null],["oidc","cli"]]' methods
    stop_serving
}

# ---- cairn login

test_a_person_signs_in_on_the_command_line_and_out_again() {
    begin
    sign k1 RS256 "$(claims '.exp = .iat + 30')" >idp/id_token # so that it is renewed at once
    sign k1 RS256 "$(claims '.sub = "ada2"')" >idp/id_token.next
    "$CAIRN" login --server "$url" >login.out 2>login.err &
    login=$!
    wait_for grep -q 'ABCD-EFGH' login.err
    wait_for grep -q device_code idp/posts
    touch idp/approved
    wait "$login" || fail "$(cat login.err)"
    has login.out "$issuer#ada2 at $url: tenant acme, as Engineer, until "
    file=$(ls "$XDG_STATE_HOME"/cairn/login/*.json)
    equal "$(stat -c %a "$file")" 600 'mode'
    equal "$(grep -c refresh_token idp/posts)" 1 'renewals'
    cairn_is 0 whoami --server "$url"
    has out "$issuer#ada2"
    equal "$(grep -c '"refresh_token"' idp/posts)" 1 'renewals: the new token is good for longer'
    cairn_is 0 ls --server "$url"
    # another server gets nothing of it, also when the file is put under its name
    cp "$file" "$XDG_STATE_HOME/cairn/login/$(printf http://127.0.0.1:1 | sha256sum | head -c 32).json"
    cairn_is 4 whoami --server http://127.0.0.1:1
    has err 'there is no token for http://127.0.0.1:1'
    # what cannot be renewed is over, and says what to do
    rm idp/id_token.next
    jq -c '.expiresAt = 1' "$file" >f.new && cat f.new >"$file"
    cairn_is 4 whoami --server "$url"
    has err 'is over: the provider says invalid_grant'
    has err 'cairn login --server'
    cairn_is 0 logout --server "$url"
    has idp/posts /revoke
    [ ! -e "$file" ] || fail 'the file is still there'
    cairn_is 4 whoami --server "$url"
    stop_serving
}

test_a_sign_in_that_is_refused_keeps_nothing() {
    begin
    touch idp/denied
    cairn_is 4 login --server "$url"
    has err access_denied
    rm idp/denied
    jq -c '.issuer += "/"' idp/discovery.json >d.new && mv d.new idp/discovery.json
    cairn_is 4 login --server "$url"
    has err 'does not say that it is the issuer'
    jq -c --arg iss "$issuer" '.issuer = $iss | .token_endpoint = "http://id.example/token" | .device_authorization_endpoint = "http://id.example/device"' idp/discovery.json >d.new && mv d.new idp/discovery.json
    cairn_is 4 login --server "$url"
    has err 'is not https'
    [ -z "$(ls "$XDG_STATE_HOME/cairn/login" 2>/dev/null)" ] || fail 'something was kept'
    stop_serving
}

# A server that says what none should: the provider itself plays it. METHOD is a jq expression that changes what it says of itself.
false_server() { jq -nc --arg iss "$issuer" '{methods: [{type: "oidc", issuer: $iss, clientId: "cli", scopes: "openid x", token: "id_token"} | '"$1"']}' >auth.new && mv auth.new idp/auth.json; }
false_whoami() { jq -nc '{id: "ada", tenantId: "acme", roles: ["Engineer"]} | '"$1" >who.new && mv who.new idp/whoami.json; }
endpoint() { jq -c ".$1 = \"$2\"" idp/discovery.json >d.new && mv d.new idp/discovery.json; } # NAME URI
begin_false() {
    begin_provider
    sign k1 RS256 "$(claims)" >idp/id_token
    touch idp/approved
    false_server .; false_whoami .
}
login_refused() { # NAME MESSAGE: nothing of the person's goes to the provider, and nothing is kept
    cairn_is 4 login --server "$issuer"
    has err "$2"
    [ ! -e idp/posts ] || fail "$1: the provider was asked: $(cat idp/posts)"
    [ -z "$(ls "$XDG_STATE_HOME/cairn/login" 2>/dev/null)" ] || fail "$1: something was kept"
}

test_login_takes_nothing_from_a_server_that_it_has_not_checked() {
    begin_false
    false_server '.token = "refresh_token"'; login_refused 'another token' 'which is neither id_token nor access_token'
    for member in issuer scopes token; do
        false_server "del(.$member)"; login_refused "no $member" "names a provider without $member"
        false_server ".$member = 1"; login_refused "$member is a number" "names a provider without $member"
    done
    false_server '.clientId = 1'; login_refused 'clientId is a number' 'names a provider without clientId'
    false_server '.type = "token"'; login_refused 'another type' 'has no identity provider that a person can sign in with'
    false_server 'del(.type)'; login_refused 'no type' 'has no identity provider that a person can sign in with'
    false_server '.issuer = "http://id.example"'; login_refused 'an issuer without TLS' 'the issuer http://id.example is not https'
    false_server '.issuer |= sub("127.0.0.1"; "127.0.0.1:1@127.0.0.1")'; login_refused 'an issuer with a user' 'user information is not allowed'
}

test_login_says_whom_it_asks_for_what() {
    begin_false
    cairn_is 0 login --server "$issuer"
    equal "$(sed '/^open /q' err)" "issuer: $issuer
client: cli
scopes: openid x
open ${issuer#http://}" 'what stands before the address'
}

test_login_sends_nothing_to_another_machine_without_tls() {
    begin_false
    # the provider hears this address, which is none that names only this machine
    cairn_is 4 login --server "http://0.0.0.0:${issuer##*:}"
    has err 'is not https'
    [ ! -e idp/gets ] || fail "it was asked: $(cat idp/gets)"
}

test_login_uses_no_endpoint_that_its_provider_may_not_have() {
    begin_false
    cp idp/discovery.json good
    for name in device_authorization_endpoint token_endpoint revocation_endpoint; do
        cp good idp/discovery.json; endpoint "$name" "http://localhost:${issuer##*:}/x"; login_refused "$name elsewhere" "$name of the provider cannot be used"
        cp good idp/discovery.json; endpoint "$name" 'https://id.example/x'; login_refused "$name of another host" 'is not on the host of the issuer'
        cp good idp/discovery.json; endpoint "$name" "$issuer@id.example/x"; login_refused "$name with a user" 'cannot be used'
        cp good idp/discovery.json; endpoint "$name" "$issuer/a/../x"; login_refused "$name with dots" 'the path holds dot segments'
    done
}

test_a_server_elsewhere_names_no_provider_of_this_machine() {
    begin_provider
    touch idp/denied
    settings
    ca ca
    cert ca server 'subjectAltName=IP:127.0.0.1,IP:0.0.0.0'
    sed -i "1i [serve]\nhosts = [\"0.0.0.0\"]\n[serve.tls]\ncertificate = \"$PWD/server.pem\"\nkey = \"$PWD/server.key\"" "$HOME/.config/cairn/config.toml"
    serve
    cairn_is 4 login --server "https://0.0.0.0:${url##*:}" --ca-file "$PWD/ca.pem"
    has err "the issuer $issuer is not https"
    [ ! -e idp/posts ] || fail "the provider was asked: $(cat idp/posts)"
    cairn_is 4 login --server "$url" --ca-file "$PWD/ca.pem" # here it may, and the person says no
    has err access_denied
    stop_serving
}

test_a_sign_in_that_is_damaged_says_so() {
    begin_false
    cairn_is 0 login --server "$issuer"
    file=$(ls "$XDG_STATE_HOME"/cairn/login/*.json)
    cp "$file" good
    for change in 'del(.issuer)' 'del(.clientId)' 'del(.use)' '.use = "refresh_token"' 'del(.tokenEndpoint)' 'del(.expiresAt)' '.token = 1' 'del(.server)' '[]'; do
        jq -c "if type == \"object\" then .expiresAt = 1 else . end | $change" good >"$file"
        cairn_is 4 whoami --server "$issuer"
        has err 'is damaged'
        has err "cairn login --server $issuer"
    done
    echo '{' >"$file"
    cairn_is 4 whoami --server "$issuer"
    has err 'is damaged'
    hasnt idp/posts refresh_token
    # a token endpoint that the file was made to name gets no refresh token
    jq -c '.expiresAt = 1 | .tokenEndpoint |= sub("127.0.0.1"; "localhost")' good >"$file"
    cairn_is 4 whoami --server "$issuer"
    has err 'is not on the host of the issuer'
    hasnt idp/posts refresh_token
    # a provider that is not there: the reason is that, and not what memory happens to hold
    jq -c '.expiresAt = 1 | .issuer = "http://127.0.0.1:1" | .tokenEndpoint = "http://127.0.0.1:1/token"' good >"$file"
    cairn_is 4 whoami --server "$issuer"
    has err 'is over: '
    echo '{' >"$file"
    cairn_is 0 logout --server "$issuer"
    [ ! -e "$file" ] || fail 'what was damaged is still there'
}

test_what_a_server_says_of_a_person_cannot_steer_a_terminal() {
    begin_false
    false_whoami '.id = "a\u001b]0;x\u0007" | .tenantId = "t\u001b[2J\nu" | .roles = ["r\u009b1m"] | .expiresAt = "e\u001b[m"'
    cairn_is 0 login --server "$issuer"
    equal "$(cat out)" "a\\x1b]0;x\\x07 at $issuer: tenant t\\x1b[2J\\nu, as r\\x9b1m, until e\\x1b[m" login
    mv out first
    cairn_is 0 whoami --server "$issuer"
    cmp -s out first || fail "whoami: $(cat -v out)"
    false_whoami '.roles = {"a": 1}'
    cairn_is 0 whoami --server "$issuer"
    equal "$(cat out)" "ada at $issuer: tenant acme, as" 'roles that are no list'
}

test_times_that_a_provider_gives_are_kept_within_bounds() {
    begin_false
    false_server '.token = "access_token"'
    : >idp/id_token.next # a token that is over at once is renewed
    for seconds in 9223372036854775807 9223372036854776 -9223372036854775808 0; do
        echo "{\"expires_in\": $seconds}" | tee idp/device.json >idp/token.json
        before=$(now)
        cairn_is 0 login --server "$issuer" # the provider is asked once at least, however short the code is good
        ends=$(jq -r '.expiresAt / 1000 | floor' "$XDG_STATE_HOME"/cairn/login/*.json)
        [ "$ends" -gt "$before" ] && [ "$ends" -le $(($(now) + 366 * 86400)) ] || fail "$seconds: the token ends at $ends, and it is $before"
    done
}

# ---- certificates of workers

ca() { # NAME
    openssl req -x509 -newkey rsa:2048 -nodes -keyout "$1.key" -out "$1.pem" -days 30 -subj "/CN=$1" 2>/dev/null
    : >"$1.index"; echo 1000 >"$1.serial"; echo 01 >"$1.crlnumber"
    cat >"$1.cnf" <<CNF
[ca]
default_ca = it
[it]
database = $PWD/$1.index
serial = $PWD/$1.serial
crlnumber = $PWD/$1.crlnumber
new_certs_dir = $PWD
certificate = $PWD/$1.pem
private_key = $PWD/$1.key
default_md = sha256
default_days = 10
default_crl_days = 10
policy = any
copy_extensions = copy
unique_subject = no
[any]
commonName = supplied
CNF
}
cert() { # CA NAME EXTENSION [ca flags]
    openssl req -newkey rsa:2048 -nodes -keyout "$2.key" -out "$2.csr" -subj "/CN=$2" -addext "$3" ${5:+-addext "$5"} 2>/dev/null
    openssl ca -batch -config "$1.cnf" -in "$2.csr" -out "$2.pem" -notext ${4:-} 2>ca.err || fail "$(cat ca.err)"
}
crl() { openssl ca -config ca.cnf -gencrl -out crl.pem 2>/dev/null; }
begin_tls() {
    ca ca; ca foreign
    cert ca server 'subjectAltName=IP:127.0.0.1'
    cert ca w1 'subjectAltName=URI:spiffe://acme/w1'
    crl
    mkdir -p "$HOME/.config/cairn"
    cat >"$HOME/.config/cairn/config.toml" <<TOML
[serve.tls]
certificate = "$PWD/server.pem"
key = "$PWD/server.key"
clientCa = "$PWD/ca.pem"
clientCrl = "$PWD/crl.pem"
clientCertificate = "$1"
[[serve.tls.clients]]
uri = "spiffe://acme/w1"
tenant = "acme"
pool = "gpu"
[[serve.tls.clients]]
name = "w2"
tenant = "acme"
pool = "cpu"
TOML
    serve
    admin=$token
}
with_cert() { status=$(curl -s -o body -w '%{http_code}' --cacert ca.pem --cert "$1.pem" --key "$1.key" "${@:3}" "$url$2" 2>curl.err) || status=000; }

test_a_certificate_is_a_worker_of_its_tenant_and_pool() {
    begin_tls optional
    with_cert w1 /v1/whoami
    equal "$status $(jq -c '[.id, .tenantId, .roles, .pool]' body)" '200 ["spiffe://acme/w1","acme",["Worker"],"gpu"]' w1
    cert ca w2 'subjectAltName=DNS:w2.example'
    with_cert w2 /v1/whoami
    equal "$(jq -c '[.id, .pool]' body)" '["CN=w2","cpu"]' w2
    with_cert w1 /v1/runs; equal "$status" 403 'a list of runs'
    with_cert w1 /v1/worker/poll -H 'Content-Type: application/json' -d '{"worker":"w","pool":"cpu","kinds":["shell"],"max":1,"waitMs":0}'
    equal "$status" 403 'another pool'
    # a token beside it is what counts
    with_cert w1 /v1/whoami -H "Authorization: Bearer $admin"
    equal "$(jq -r .tenantId body)" default 'the token'
    with_cert w1 /v1/whoami -H 'Authorization: Bearer cairn_x'; equal "$status" 401 'a bad token is not mended by a certificate'
    # nobody, by other certificates
    cert ca w3 'subjectAltName=URI:spiffe://acme/w3'; with_cert w3 /v1/whoami; equal "$status" 401 'not mapped'
    cert ca both 'subjectAltName=URI:spiffe://acme/w1,URI:spiffe://acme/w3'; with_cert both /v1/whoami; equal "$status" 401 'two URIs'
    # a certificate with a URI is known by that alone, whatever its common name
    for names in URI:spiffe://acme/w3 URI:spiffe://acme/w1,URI:spiffe://acme/w3; do cert ca w2 "subjectAltName=$names"; with_cert w2 /v1/whoami; equal "$status" 401 "CN=w2, $names"; done
    cert ca w2 'subjectAltName=DNS:w2.example,URI:spiffe://acme/w1'; with_cert w2 /v1/whoami
    equal "$(jq -c '[.id, .pool]' body)" '["spiffe://acme/w1","gpu"]' 'CN=w2 with the URI of w1'
    cert foreign f1 'subjectAltName=URI:spiffe://acme/w1'; with_cert f1 /v1/whoami; equal "$status" 000 'foreign CA'
    cert ca eku 'subjectAltName=URI:spiffe://acme/w1' '' 'extendedKeyUsage=serverAuth'; with_cert eku /v1/whoami; equal "$status" 000 'other usage'
    cert ca old 'subjectAltName=URI:spiffe://acme/w1' '-startdate 20200101000000Z -enddate 20200201000000Z'; with_cert old /v1/whoami; equal "$status" 000 'expired'
    equal "$(curl -s -o body -w '%{http_code}' --cacert ca.pem "$url/v1/whoami")" 401 'none at all'
    # no session is resumed, with an identity or without
    for version in tls1_2 tls1_3; do
        echo | openssl s_client -connect "${url#https://}" -CAfile ca.pem -cert w1.pem -key w1.key -"$version" -sess_out sess >s.out 2>&1
        rm -f reused; [ ! -s sess ] || echo | openssl s_client -connect "${url#https://}" -CAfile ca.pem -"$version" -sess_in sess >reused 2>&1
        [ ! -e reused ] || hasnt reused 'Reused,'
    done
    stop_serving
}

test_a_revoked_certificate_is_refused_also_on_a_connection_that_is_open() {
    begin_tls optional
    # one connection, kept: asked, revoked, asked again
    cat >kept.py <<'PY'
import http.client, ssl, sys, os, time
url, step = sys.argv[1], sys.argv[2]
context = ssl.create_default_context(cafile="ca.pem"); context.load_cert_chain("w1.pem", "w1.key")
c = http.client.HTTPSConnection(url, context=context)
def ask():
    c.request("GET", "/v1/whoami"); a = c.getresponse(); a.read(); return a.status
first = ask(); open("first", "w").write(str(first)); sock = c.sock
while not os.path.exists("go"): time.sleep(0.02)
last = ask(); assert c.sock is sock; open("last", "w").write(str(last))
PY
    python3 kept.py "${url#https://}" x &
    kept=$!
    wait_for test -s first
    equal "$(cat first)" 200 'before'
    openssl ca -config ca.cnf -revoke w1.pem 2>/dev/null; crl
    : >serve.err; kill -HUP "$server"; wait_for grep -q 'certificates and tokens are read again' serve.err
    touch go; wait "$kept" || fail 'the client failed'
    equal "$(cat last)" 401 'after, on the same connection'
    with_cert w1 /v1/whoami; equal "$status" 000 'after, on a new one'
    stop_serving
}

test_where_certificates_are_required_nobody_comes_without_one() {
    begin_tls required
    curl -s -o body --cacert ca.pem -H "Authorization: Bearer $admin" "$url/v1/whoami" && fail 'let in without a certificate'
    with_cert w1 /v1/whoami; equal "$status" 200 'with one'
    stop_serving
}

test_a_worker_with_a_certificate_executes_steps() {
    begin_tls optional
    sed -i '1i [serve]\nroutes = [{ tenant = "acme", pool = "gpu" }]' "$HOME/.config/cairn/config.toml"
    stop_serving; serve
    cairn_is 0 config list
    CAIRN_CONFINE=none "$CAIRN" worker --server "$url" --ca-file "$PWD/ca.pem" --cert w1.pem --key w1.key --pool gpu >worker.out 2>&1 &
    post() { status=$(curl -s -o body -w '%{http_code}' --cacert ca.pem -H "Authorization: Bearer $1" -H 'Content-Type: application/json' -d "$3" "$url$2"); }
    post "$token" /v1/tokens '{"name":"e","tenantId":"acme","roles":["engineer"]}'; answers 201
    engineer=$(jq -r .token body)
    post "$engineer" /v1/runs "{\"runId\":\"w\",\"document\":$(plan_text p '{"stepId":"a","kind":"shell","with":{"command":"echo hello"}}')}"; answers 202
    ended() { [ "$(curl -s --cacert ca.pem -H "Authorization: Bearer $engineer" "$url/v1/runs/w/status" | jq -r .status)" = COMPLETED ]; }
    wait_for ended
    stop_serving
}
run_tests "$@"
