"""The cases of expect.py as HTTP requests.

requests.py check                      every operation has a route that can be filled in; prints how many requests there are
requests.py doors OPENAPI.json [FILE]  every route (of FILE) is one of the server's, and every one of the server's is asked for; prints what is not
requests.py list WORLD.json            the requests, one JSON object a line
requests.py drive WORLD.json URL [X…]  sends them; prints what answered otherwise, and "N requests, N wrong". X: operations to leave out

WORLD.json is what the test has made beforehand:
  {"tokens": {"operator": {"own": {"valid": "cairn_…", "expired": …}, "own_limited": {…}, …}, …},
   "places": {"own": {"tenant": "acme", "project": "web", "environment": "prod", "run": "…", "step": "…", …}, …},
   "unmet": ["approved_plan", …]}
A token is asked for as tokens[principal][place][state] or, when the place has none of its own, tokens[principal]["any"][state].
"unmet" are the conditions that do not hold in this world. Each case is asked with a reason and, where one is needed, without.
"""
import hashlib, http.client, itertools, json, os, re, sys, urllib.parse, uuid

import expect as matrix

ROUTES = os.path.join(matrix.ROOT, "test/e2e/authorization_routes.json")
REASON = "asked by the matrix"
DIFFER = {"date", "cairn-request-id", "content-length"}  # headers of which every answer has its own
NEVER = {"internal", "unix_socket"}  # a caller over TCP is neither


def routes(path=ROUTES):
    return json.load(open(path))["routes"]


def every_route(path=ROUTES):
    """(operation, route): the routes of the operations, then those that lead to the same operations."""
    return [(name, route) for name, route in routes(path).items() if route] + [(route["operation"], route) for route in json.load(open(path))["also"]]


def goes_to(described, route):
    """The most literal route of the server's own description that a request goes to; None: there is none."""
    def shape(path):
        return re.compile("[^/]+".join(map(re.escape, re.split(r"\{\w+\}", path))) + "$")
    path = route["path"].split("?")[0].replace("{place}", "/v1")
    found = [(known.count("{"), known) for known, methods in described["paths"].items() if route["method"].lower() in methods and shape(known).match(path)]
    return (route["method"], min(found)[1]) if found else None


def without_door(described, table):
    """Rows whose request goes to no route of the server's own description."""
    return sorted(name for name, route in table.items() if route and not goes_to(described, route))


def doors_without_request(described, path=ROUTES):
    """Routes of the server that no request of the matrix goes to, and that are not open to everybody by their description."""
    asked = {goes_to(described, route) for _, route in every_route(path)}
    return sorted(f"{method.upper()} {known}" for known, methods in described["paths"].items() for method, about in methods.items()
                  if (method.upper(), known) not in asked and about.get("security") != [])


def fill(template, names):
    """{name} in every string; an unknown name is an error, since a request that is not what it seems shows nothing."""
    if isinstance(template, str):
        return re.sub(r"\{(\w+)\}", lambda m: str(names[m.group(1)]), template)
    if isinstance(template, list):
        return [fill(item, names) for item in template]
    if isinstance(template, dict):
        return {key: fill(value, names) for key, value in template.items()}
    return template


def with_reason(route, path, body, reason):
    where = route.get("reason")
    if not where or not reason:
        return path, body
    if where == "query":
        return path + ("&" if "?" in path else "?") + "reason=" + urllib.parse.quote(reason), body
    body = json.loads(json.dumps(body))
    (body["payload"] if where == "payload" else body)["reason"] = reason
    return path, body


def wanted(row, route, words, reason=REASON):
    """Statuses that are right. Allowed means that authorization was not what stopped it: the object may be in any state."""
    status, code = int(words[0]), words[1]
    if status == 200 and route.get("lacks") == "lease":  # nobody has the task that it names
        return {"allowed": True, "not": [401]}
    if status == 200 and route.get("lacks"):  # what it names inside of the object
        return {"allowed": True, "not": [401, 403]}
    if status == 200:
        return {"allowed": True, "not": [401, 403] if row["scope"] != "item" else [401, 403, 404]}
    if not reason and status != 401 and route.get("reason") == "payload":
        return {"allowed": False, "status": [400, 422]}  # the schema of the signal comes first, whoever sends it
    if code == "AUTHZ_APPROVAL_REQUIRED":  # who may ask for it is told first when it cannot be done at all
        return {"allowed": False, "status": [status, 409]}
    if code == "AUTHZ_REASON_REQUIRED" and route.get("lacks"):
        return {"allowed": False, "status": [status, 404]}
    return {"allowed": False, "status": [status], "code": None if status == 404 else code}


def token_of(world, principal, place, state):
    if principal == "none":
        return None
    of = world["tokens"][principal]
    return of.get(place, of.get("any"))[state]


def requests(world, leave_out=()):
    """Of the route of each operation everything; of further routes to it all callers and places, and all tokens at the first of them."""
    data, table = matrix.load(), routes()
    rows = {row["name"]: row for row in data["operations"]}
    for row in data["operations"]:
        if table[row["name"]] and row["name"] not in leave_out:
            yield from requests_of(world, data, row, table[row["name"]], row["name"], lambda place, state: True)
    for operation, route in every_route()[sum(route is not None for route in table.values()):]:
        row = dict(rows[operation], **({"scope": "item"} if route.get("item") else {}))
        if operation not in leave_out and "also" not in leave_out:
            name = f"{operation} {route['method']} {route['path']}"
            yield from requests_of(world, data, row, route, name, lambda place, state: state == "valid" or place == "own")


def requests_of(world, data, row, route, name, wants):
    facts = [f for f in matrix.facts_of(row) if f in ("met", "no_reason")]
    for principal, place, state, fact in itertools.product(matrix.PRINCIPALS, matrix.PLACES, matrix.TOKENS, facts):
        if not wants(place, state):
            continue
        names = dict(world["places"][place], uuid=uuid.uuid4())
        names["place"] = "/v1/t/{tenant}/p/{project}/e/{environment}".format(**names)
        reason = None if fact == "no_reason" else REASON
        missing = NEVER | set(world.get("unmet", ())) | ({"reason"} if not reason else set())
        if place in ("other_project", "other_environment"):
            missing = missing | {"role_within"}  # a token for that place goes beyond its maker's own
        words = matrix.expect(data, row, [principal], place, state, missing)
        filled = fill(route.get("body"), names)
        names["bodySha256"] = hashlib.sha256(json.dumps(filled).encode()).hexdigest()
        path, body = with_reason(route, fill(route["path"], names), filled, reason)
        yield {"case": f"{name} {principal} {place} {state} {fact}", "method": route["method"], "path": path, "body": body,
               "accept": route.get("accept", "application/json"), "token": token_of(world, principal, place, state),
               "changes": route.get("changes", ""), "want": wanted(row, route, words, reason),
               "twin": f"{name} {principal} {state} {fact}" if place in ("other_tenant", "absent") and row["scope"] == "item" else None,
               "ids": sorted(set(map(str, names.values())), key=len, reverse=True)}


def in_order(all_requests):
    """Refusals first: they must change nothing. Then what is allowed, and at last what ends things."""
    return sorted(all_requests, key=lambda r: (r["want"]["allowed"], r["changes"] == "ends"))


def send(connection, request):
    headers = {"Accept": request["accept"]}
    if request["token"]:
        headers["Authorization"] = "Bearer " + request["token"]
    body = None
    if request["body"] is not None:
        body = json.dumps(request["body"])
        headers["Content-Type"] = "application/json"
    connection.request(request["method"], request["path"], body, headers)
    answer = connection.getresponse()
    return answer.status, answer.read(), sorted(h for h in answer.getheaders() if h[0].lower() not in DIFFER)


def fault_of(request, status, text):
    want = request["want"]
    # An object that the world cannot make: let in, and not there, before anybody asks for a reason.
    if status == 404 and "/none-" in request["path"] and (want["allowed"] or want.get("code") == "AUTHZ_REASON_REQUIRED"):
        return None
    if want["allowed"]:
        return f"{status}, but it is allowed" if status in want["not"] else None
    if status not in want["status"]:
        return f"{status}, not {want['status'][0]}"
    try:
        code = json.loads(text).get("code")
    except (ValueError, AttributeError):
        return f"{status} without a problem in its body"
    if want.get("code") and code != want["code"]:
        return f"code {code}, not {want['code']}"
    return "the answer tells that it is of another tenant" if "TENANT" in str(code) else None


def without_ids(request, status, text, headers):
    """An answer with the ids of its request blotted out and without what differs from answer to answer."""
    text = text.decode("utf-8", "replace")
    for name in request["ids"]:
        text = text.replace(name, "ID")
    try:
        problem = {k: v for k, v in json.loads(text).items() if k not in ("instance", "traceId", "requestId")}
    except (ValueError, AttributeError):
        problem = text
    return status, json.dumps(problem, sort_keys=True), headers


def twins_fault(request, status, text, headers, seen):
    """What is of another tenant must answer as what is absent does."""
    if status != 404 or not request["twin"]:
        return None
    answer = without_ids(request, status, text, headers)
    return None if seen.setdefault(request["twin"], answer) == answer else "a foreign object does not answer like an absent one"


def drive(world, url, leave_out):
    where = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(where.hostname, where.port, timeout=30)
    sent, wrong, seen = 0, 0, {}
    for request in in_order(requests(world, leave_out)):
        status, text, headers = send(connection, request)
        fault = fault_of(request, status, text) or twins_fault(request, status, text, headers, seen)
        sent += 1
        if fault:
            wrong += 1
            print(f"{request['case']}: {fault} ({request['method']} {request['path']})")
    print(f"{sent} requests, {wrong} wrong")
    return wrong == 0


def pretended():
    """A world in which every id is its own name, for `check`."""
    names = set(re.findall(r"\{(\w+)\}", open(ROUTES).read())) - {"place", "uuid", "bodySha256"}
    place = {name: "x-" + name for name in names | {"tenant", "project", "environment"}}
    states = {state: "cairn_" + state for state in matrix.TOKENS}
    return {"tokens": {p: {"any": states} for p in matrix.PRINCIPALS}, "places": {p: place for p in matrix.PLACES}}


def check():
    data, table = matrix.load(), routes()
    operations = {row["name"]: row for row in data["operations"]}
    faults = [f"{name} has no route" for name in operations if name not in table]
    faults += [f"{name} is no operation" for name in table if name not in operations]
    for name, route in table.items():
        if not route or name not in operations:
            continue
        row = operations[name]
        wants_reason = any("reason" in cell for cell in row["roles"].values())
        if wants_reason != ("reason" in route):
            faults.append(f"{name}: the table and its route differ about the reason")
        if row["scope"] in ("place", "tenant") and "{place}" not in route["path"]:
            faults.append(f"{name}: its path names no place")
    if faults:
        raise SystemExit("\n".join(faults))
    made = in_order(requests(pretended()))
    if any("{" in r["path"] for r in made):
        raise SystemExit("a path was not filled in")
    print(f"{len(made)} requests, {sum(r['want']['allowed'] for r in made)} allowed")


def main(arguments):
    if arguments[:1] == ["check"]:
        check()
    elif arguments[:1] == ["doors"] and len(arguments) in (2, 3):
        described = json.load(open(arguments[1]))
        faults = ["no such route: " + name for name in without_door(described, routes(*arguments[2:]))]
        faults += ["no such route: " + route["path"] for _, route in every_route(*arguments[2:]) if not goes_to(described, route)]
        faults += ["no request goes to " + door for door in doors_without_request(described, *arguments[2:])]
        sys.exit("\n".join(faults) if faults else 0)
    elif arguments[:1] == ["list"] and len(arguments) == 2:
        for request in in_order(requests(json.load(open(arguments[1])))):
            print(json.dumps(request))
    elif arguments[:1] == ["drive"] and len(arguments) >= 3:
        sys.exit(0 if drive(json.load(open(arguments[1])), arguments[2], set(arguments[3:])) else 1)
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
