# What runs the code of kind python (python.c): reads its job from stdin, writes an outcome to descriptor 3.
import sys, os, json
_MARK = os.urandom(16).hex() # stands before a number that json.dumps cannot write
def _report(outcome):
    data = json.dumps(outcome)
    if _MARK in data:
        import re
        data = re.sub('"%s([^"]*)"' % _MARK, r'\1', data)
    data = data.encode()
    while data:
        data = data[os.write(3, data):]
class _Real(float): # has digits that a double does not hold, and gives them back when nobody has calculated with it
    __slots__ = ('digits',)
def _read_real(s): # a float, as everywhere in Python; beyond its range a Decimal and not an infinity
    f = float(s)
    if len(s) <= 16 and 1e-290 < abs(f) < 1e308: return f
    from decimal import Decimal
    if f in (float('inf'), float('-inf')): return Decimal(s)
    if Decimal(repr(f)) == Decimal(s): return f
    r = _Real(f)
    r.digits = s
    return r
def _exact(s):
    if len(s) > 4300: raise ValueError('a number of more than 4300 digits')
    return _MARK + s
def _text(s):
    return s.encode('utf-8', 'surrogatepass').decode('utf-8', 'replace')
def _key(k):
    if isinstance(k, str): return _text(k)
    if k is None: return 'null'
    if isinstance(k, bool): return 'true' if k else 'false'
    return _text(str(k))
def _plain(o, depth=0):
    if depth > 100: raise ValueError('the result is nested too deeply')
    if o is None or isinstance(o, bool): return o
    if isinstance(o, str): return _text(str(o))
    if isinstance(o, int):
        if o.bit_length() > 14284: raise ValueError('an integer of more than 4300 digits')
        return int(o)
    if type(o) is _Real: return _exact(o.digits)
    if isinstance(o, float): return float(o) if o == o and o not in (float('inf'), float('-inf')) else None
    if isinstance(o, dict): return {_key(k): _plain(v, depth + 1) for k, v in o.items()}
    if isinstance(o, (list, tuple, set, frozenset)): return [_plain(v, depth + 1) for v in o]
    if isinstance(o, (bytes, bytearray, memoryview)): return bytes(o).decode('utf-8', 'replace')
    if type(o).__name__ == 'Decimal': return _exact(str(o)) if o.is_finite() else None
    for name, args in (('isoformat', ()), ('to_dict', ('records',)), ('model_dump', ()), ('tolist', ()), ('_asdict', ())):
        f = getattr(o, name, None)
        if callable(f) and not isinstance(o, type):
            try: v = f(*args)
            except TypeError: continue
            return _plain(v, depth + 1)
    import dataclasses
    if dataclasses.is_dataclass(o) and not isinstance(o, type): return _plain(dataclasses.asdict(o), depth + 1)
    if hasattr(o, '__iter__') and hasattr(o, '__next__'): return [_plain(v, depth + 1) for v in o]
    return _text(str(o))
def _module(path):
    import importlib
    path = path.replace(':', '.')
    try: return importlib.import_module(path)
    except ModuleNotFoundError:
        if '.' not in path: raise
        head, tail = path.rsplit('.', 1)
        return getattr(importlib.import_module(head), tail)
def _names(value): # "a, b as c" and ["a", {"b": "c"}] as {name: alias}
    if isinstance(value, dict): return {str(k): str(v or k) for k, v in value.items()}
    words = value.split(',') if isinstance(value, str) else value or []
    found = {}
    for word in words:
        if isinstance(word, dict): found.update({str(word['name']): str(word.get('as') or word['name'])} if 'name' in word else _names(word))
        else: parts = str(word).split(); found[parts[0]] = parts[2] if len(parts) == 3 and parts[1] == 'as' else parts[0]
    return found
def _import(lib): # {from: module, import: names, as: alias}
    wanted, alias = lib.get('import'), lib.get('as')
    if 'from' not in lib:
        found = {}
        for name, short in _names(wanted).items():
            module = _module(name)
            short = alias or (short if short != name else None)
            found[short or name.split('.')[0]] = module if short or '.' not in name else sys.modules[name.split('.')[0]]
        return found
    module = _module(str(lib['from']))
    if wanted in ('*', ['*']): return {k: getattr(module, k) for k in getattr(module, '__all__', None) or dir(module) if not k.startswith('_')}
    if not wanted: return {alias or str(lib['from']).split('.')[-1]: module}
    found = {}
    for name, short in _names(wanted).items():
        found[alias or short] = getattr(module, name) if hasattr(module, name) else _module('%s.%s' % (lib['from'], name))
    return found
def _libs(libs):
    if isinstance(libs, dict) and ('from' in libs or 'import' in libs): return _import(libs)
    if isinstance(libs, dict): return {k: _module(str(v or k)) for k, v in libs.items()}
    found = {}
    for lib in [libs] if isinstance(libs, str) else libs or []:
        if isinstance(lib, dict): found.update(_libs(lib))
        else: found[lib.split('.')[0]] = (_module(lib), sys.modules.get(lib.split('.')[0]))[1] or _module(lib)
    return found
def _returns(tree):
    import ast
    todo = list(tree.body)
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.Return, ast.Await)): return True
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            todo.extend(ast.iter_child_nodes(node))
    return False
def _settle(value):
    import inspect
    if inspect.iscoroutine(value):
        import asyncio
        return asyncio.run(value)
    return value
def _body(tree, names):
    import ast
    shell = ast.parse('def __task__(): pass\nasync def __task_async__(): pass')
    wait = any(isinstance(n, ast.Await) for n in ast.walk(tree)) and not any(
        isinstance(n, ast.AsyncFunctionDef) for n in ast.walk(tree))
    function = shell.body[1 if wait else 0]
    function.name = '__task__'
    moved = [n for n in tree.body if isinstance(n, ast.ImportFrom) and n.module == '__future__']
    last = ast.parse("return locals().get('result')").body
    function.body = [n for n in tree.body if n not in moved] + last
    used = {n for node in ast.walk(tree) if isinstance(node, (ast.Global, ast.Nonlocal)) for n in node.names}
    function.args.args = [ast.arg(arg=n) for n in names if n.isidentifier() and n not in used]
    whole = ast.Module(body=moved + [function], type_ignores=[])
    return ast.fix_missing_locations(whole), [a.arg for a in function.args.args]
def _call_main(main, given, data):
    import inspect
    kinds = inspect.Parameter
    parameters = list(inspect.signature(main).parameters.values())
    args, kwargs = [], {}
    for p in parameters:
        if p.kind == kinds.VAR_KEYWORD:
            kwargs.update({k: v for k, v in given.items() if k not in kwargs})
        elif p.kind == kinds.VAR_POSITIONAL: pass
        elif p.name in given: (args.append(given[p.name]) if p.kind == kinds.POSITIONAL_ONLY else kwargs.__setitem__(p.name, given[p.name]))
        elif p.name in ('input_data', 'context', 'args', 'inputs', 'input'): kwargs[p.name] = data
        elif p.name == 'results' and p.default is kinds.empty: kwargs[p.name] = {}
        elif p.default is kinds.empty and len(parameters) == 1: args.append(data)
    return main(*args, **kwargs)
def _near(path, document): # as it is; else beside the document and further up
    if os.path.isabs(path) or os.path.exists(path) or not document: return path
    here = os.path.dirname(os.path.abspath(document))
    while True:
        there = os.path.join(here, path)
        if os.path.isfile(there): return there
        if os.path.dirname(here) == here: return path
        here = os.path.dirname(here)
def _run(job):
    import ast, keyword
    code = job.get('code')
    name = job.get('file') or '<task>'
    if job.get('open'):
        with open(_near(job['open'], job.get('document')), encoding='utf-8') as f: code = f.read()
    given = job.get('input')
    data = given if isinstance(given, dict) else {} if given is None else given
    given = {k: v for k, v in data.items()} if isinstance(data, dict) else {}
    scope = {'__name__': '__task__', '__builtins__': __builtins__, '__file__': name, 'execution_id': job.get('execution_id')}
    scope.update({k: data for k in ('input_data', 'args', 'context')})
    scope.update(_libs(job.get('libs')))
    scope.update({k: v for k, v in given.items() if k.isidentifier() and not keyword.iskeyword(k)})
    before = scope.get('result')
    import linecache
    linecache.cache[name] = (len(code), None, code.splitlines(True), name)
    tree = ast.parse(code, name)
    if _returns(tree):
        names = [k for k in scope if k in given or k in ('input_data', 'args', 'context')]
        tree, used = _body(tree, names)
        exec(compile(tree, name, 'exec'), scope)
        return _settle(scope['__task__'](**{k: scope[k] for k in used}))
    try: exec(compile(tree, name, 'exec'), scope)
    except SystemExit as e: # a program that ends itself well has said what it had to say
        if e.code not in (None, 0) or 'result' not in scope: raise
        return _settle(scope['result'])
    main = scope.get('main')
    untouched = 'result' not in scope or ('result' in given and scope['result'] is before)
    if untouched and callable(main): return _settle(_call_main(main, given, data))
    return _settle(scope.get('result'))
def _kind(e):
    if isinstance(e, TimeoutError) or 'Timeout' in type(e).__name__: return 'timeout', True
    if isinstance(e, ConnectionError) or type(e).__name__ in ('ConnectionError', 'ConnectError', 'URLError'): return 'connection', True
    if isinstance(e, SyntaxError) or type(e).__name__ == 'JSONDecodeError': return 'parse', False
    if isinstance(e, FileNotFoundError): return 'not_found', False
    return 'transform', False
def _main():
    import traceback
    job = json.loads(sys.stdin.buffer.read(), parse_float=_read_real)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding='utf-8', errors='backslashreplace', line_buffering=True)
    status = 0
    try:
        outcome = {'ok': True, 'result': _plain(_run(job))}
    except SystemExit as e:
        n = e.code if isinstance(e.code, int) else 0 if e.code is None else 1
        outcome = {'ok': n == 0, 'result': None, 'kind': 'unknown', 'retryable': False, 'code': 'EXIT_NONZERO',
                   'message': _text(str(e.code)) if not isinstance(e.code, int) else 'exit %d' % n, 'type': 'SystemExit', 'traceback': ''}
    except BaseException as e:
        kind, again = _kind(e)
        frames = traceback.extract_tb(e.__traceback__)
        own = [f for f in frames if f.filename != '<string>']
        lines = traceback.format_list(own) + traceback.format_exception_only(type(e), e)
        trace = ('Traceback (most recent call last):\n' if own else '') + ''.join(lines)
        try: message = str(e)
        except Exception: message = ''
        print(trace, end='', file=sys.stderr)
        outcome = {'ok': False, 'kind': kind, 'retryable': again, 'code': type(e).__name__, 'message': _text(message)[:2000] or type(e).__name__,
                   'type': type(e).__name__, 'traceback': _text(trace)[-8000:]}
        status = 1
    _report(outcome)
    sys.stdout.flush()
    sys.exit(status)
_main()
