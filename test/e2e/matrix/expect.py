"""What schemas/authorization.json says about every case, read without the code under test.

expect.py prints one line per case: the case in words, "=>", and the decision in words. test/unit/auth_matrix.c asks src/auth the
same questions; requests.py asks them over HTTP.

    run.start operator own valid met => 200 - - - operator - - - -
    operation roles place token facts => status code audit-code unmet effective redacted p1 reason approval

roles   none, one role, or several with '+'
place   own: unlimited token, object of its tenant. own_limited: the token is limited to a project and an environment, and the object is
        in them. other_project, other_environment: the object is not. other_tenant. absent: own, but there is no such object
token   valid, expired, revoked, wrong_audience
facts   met: every condition holds; no_X: all but X
"""
import itertools, json, os, sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
PRINCIPALS = ["none", "operator", "engineer", "admin", "system", "worker", "host", "auditor", "platform"]
PLACES = ["own", "own_limited", "other_project", "other_environment", "other_tenant", "absent"]
TOKENS = {"valid": None, "expired": "AUTHN_EXPIRED", "revoked": "AUTHN_REVOKED", "wrong_audience": "AUTHN_AUDIENCE"}
EFFECTS = {"own", "redacted", "p1"}  # conditions that no fact of the request can fail


def load():
    return json.load(open(os.path.join(ROOT, "schemas/authorization.json")))


def decision(status, code="-", audit=None, unmet="-", effective="-", redacted=False, p1=False, reason=False, approval=False):
    flag = {True: "yes", False: "-"}
    return [str(status), code, audit or code, unmet, effective, flag[redacted], flag[p1], flag[reason], flag[approval]]


def refusal(data, row, conditions, place, missing):
    """None when the cell allows it; else how far it came and the decision. `missing`: conditions that do not hold."""
    answers, scope = data["answers"], row["scope"]
    denied = answers["denied"]
    if "own" in conditions:
        if place == "other_tenant":
            status = row.get("otherTenant", answers["otherTenant"])
            foreign = "NOT_FOUND" if status == answers["absent"] else "AUTHZ_DENIED"
            return 0, decision(status, foreign, "AUTHZ_TENANT_FORBIDDEN", "-" if status == answers["absent"] else "own")
        limited = place in ("own_limited", "other_project", "other_environment")
        if (limited if scope == "tenant" else place in ("other_project", "other_environment")):
            status = answers["outsideItem" if scope == "item" else "outsidePlace"]
            hidden = status == answers["absent"]
            return 1, decision(status, "NOT_FOUND" if hidden else "AUTHZ_DENIED", "AUTHZ_SCOPE_FORBIDDEN", "-" if hidden else "own")
        if scope == "item" and place == "absent":
            return 2, decision(answers["absent"], "NOT_FOUND")
    unmet = [c for c in data["conditions"] if c in conditions and c in missing]
    plain = [c for c in unmet if c not in ("reason", "two_person")]
    if plain:
        return 3, decision(denied, "AUTHZ_DENIED", unmet=plain[0])
    if "reason" in unmet:
        return 4, decision(denied, "AUTHZ_REASON_REQUIRED", unmet="reason", reason=True)
    if "two_person" in unmet:
        return 5, decision(denied, "AUTHZ_APPROVAL_REQUIRED", unmet="two_person", approval=True)
    return None


def expect(data, row, roles, place, token, missing):
    cells = row["roles"]
    if "none" in cells:
        return decision(200)
    if roles == ["none"]:
        return decision(data["answers"]["unauthenticated"], "AUTHN_REQUIRED")
    if TOKENS[token]:
        return decision(data["answers"]["unauthenticated"], "AUTHN_REQUIRED", TOKENS[token])
    held = [r for r in roles if r in cells]
    if not held:
        return decision(data["answers"]["denied"], "AUTHZ_DENIED")
    refusals = {r: refusal(data, row, cells[r], place, missing) for r in held}
    suffice = [r for r in held if refusals[r] is None]
    if not suffice:
        return max((refusals[r] for r in held), key=lambda pair: pair[0])[1]
    acts = max(suffice, key=data["roles"].index)  # the list has the most permissive first
    return decision(200, effective=acts, redacted=all("redacted" in cells[r] for r in suffice), p1="p1" in cells[acts],
                    reason="reason" in cells[acts])


def facts_of(row):
    named = {c for conditions in row["roles"].values() for c in conditions} - EFFECTS
    return ["met"] + ["no_" + c for c in sorted(named)]


def cases(data):
    """The product that the design asks for, then pairs of roles, and all of them, with a good token."""
    for row in data["operations"]:
        for principal, place, token, facts in itertools.product(PRINCIPALS, PLACES, TOKENS, facts_of(row)):
            yield row, [principal], place, token, facts
        several = [list(pair) for pair in itertools.combinations(PRINCIPALS[1:], 2)] + [PRINCIPALS[1:]]
        for roles, place, facts in itertools.product(several, PLACES, facts_of(row)):
            yield row, roles, place, "valid", facts


def main():
    data = load()
    out = sys.stdout.write
    for row, roles, place, token, facts in cases(data):
        words = expect(data, row, roles, place, token, set() if facts == "met" else {facts[3:]})
        if len(roles) > 1:
            words[3] = "*"  # of several roles that fail, any may tell which condition it was
        out(f"{row['name']} {'+'.join(roles)} {place} {token} {facts} => {' '.join(words)}\n")


if __name__ == "__main__":
    main()
