# SPDX-License-Identifier: Apache-2.0
# What sbx writes and reads has the form that docs/schema tells.
. "$(dirname "$0")/lib.sh"
needs python3 || { skip schema "no python3"; finish; }
schemas=$(cd "$(dirname "$0")/../../docs/schema" && pwd)
cat >"$scratch/valid.py" <<'END'
"""valid.py SCHEMA FILE...: each line of a .jsonl file, or the whole of another, against the part of JSON Schema that is used."""
import json, os, re, sys

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None), "integer": int,
         "number": (int, float)}
top = json.load(open(sys.argv[1]))


def is_type(v, t):
    return isinstance(v, TYPES[t]) and not (isinstance(v, bool) and t in ("integer", "number"))


def fail(at, why):
    raise SystemExit(f"{at or 'top'}: {why}")


def valid(v, s, at):
    try:
        check(v, s, at)
    except SystemExit:
        return False
    return True


def check(v, s, at):
    if s is True:
        return
    if s is False:
        fail(at, "not allowed")
    for k, a in s.items():
        if k == "$ref":
            other, _, path = a.partition("#/")
            d = json.load(open(os.path.join(os.path.dirname(sys.argv[1]), other))) if other else top
            for part in path.split("/"):
                d = d[part]
            check(v, d, at)
        elif k == "type" and not any(is_type(v, t) for t in ([a] if isinstance(a, str) else a)):
            fail(at, f"{v!r} is no {a}")
        elif k == "const" and v != a:
            fail(at, f"{v!r} is not {a!r}")
        elif k == "enum" and v not in a:
            fail(at, f"{v!r} is not of {a}")
        elif k == "pattern" and isinstance(v, str) and not re.search(a, v):
            fail(at, f"{v!r} does not match {a}")
        elif k == "minimum" and is_type(v, "number") and v < a:
            fail(at, f"{v} is less than {a}")
        elif k in ("anyOf", "oneOf") and not any(valid(v, o, at) for o in a):
            fail(at, f"{v!r} fits none")
        elif k == "required" and isinstance(v, dict):
            for r in a:
                r in v or fail(at, f"no {r}")
        elif k == "items" and isinstance(v, list):
            for i, x in enumerate(v):
                check(x, a, f"{at}[{i}]")
        elif k == "properties" and isinstance(v, dict):
            for n, x in a.items():
                if n in v:
                    check(v[n], x, f"{at}.{n}")
        elif k == "additionalProperties" and isinstance(v, dict):
            for n, x in v.items():
                if n not in s.get("properties", {}):
                    check(x, a, f"{at}.{n}")


for name in sys.argv[2:]:
    text = open(name).read()
    texts = text.splitlines() if name.endswith(".jsonl") else [text]
    texts or fail(name, "empty")
    for n, line in enumerate(texts):
        check(json.loads(line), top, f"{name}:{n + 1}")
END
holds() { # NAME SCHEMA FILE...
	h_name=$1 h_schema=$2
	shift 2
	check "$h_name" python3 "$scratch/valid.py" "$schemas/$h_schema.schema.json" "$@"
}
fresh
cd "$work" || exit 1
cat >"$scratch/policy.json" <<END
{"version": 1, "files": {"grants": [{"path": "$work", "mode": "rw"}], "hide": ["/etc/hostname"], "protect": ["*.key"]},
 "process": {"env": {"A": "b"}, "timeout_s": 30, "limits": {"tasks": 100, "memory": "1G"}},
 "exec": {"deny": [{"program": "rm", "args": ["-rf", "/"], "reason": "no"}]}}
END
p=${platforms%% *}
holds "a policy" policy "$scratch/policy.json"
check "is what sbx reads" "$sbx" policy check "$scratch/policy.json"
echo '{"version": 1, "process": {"timeout": 1}}' >"$scratch/bad.json"
if python3 "$scratch/valid.py" "$schemas/policy.schema.json" "$scratch/bad.json" 2>/dev/null ||
	"$sbx" policy check "$scratch/bad.json" >/dev/null 2>&1; then
	echo "bad.json is taken" >"$scratch/why"
	not_ok "both refuse an unknown key" "$scratch/why"
else
	ok "both refuse an unknown key"
fi
i=0
for script in 'echo hi; exit 3' 'cat /etc/hostname; echo x >f; rm f; mkdir d' 'kill -TERM $$' 'rm -rf /'; do
	i=$((i + 1))
	timeout 60 "$sbx" exec --platform "$p" --policy "$scratch/policy.json" --audit "$scratch/audit.jsonl" --json=3 --events 4 \
		--shell "$script" >/dev/null 2>&1 </dev/null 3>"$scratch/result$i.json" 4>"$scratch/events$i.jsonl"
done
holds "results" result "$scratch"/result*.json
holds "events" event "$scratch"/events*.jsonl
# A command that is refused before anything starts has an end too, and no start.
refused() { # NAME STATUS CODE ARG...
	r_name=$1 r_status=$2 r_code=$3
	shift 3
	timeout 60 "$sbx" exec --json=3 --events 4 --platform "$p" "$@" >/dev/null 2>&1 </dev/null \
		3>"$scratch/refused.json" 4>"$scratch/refused.jsonl"
	holds "$r_name: events" event "$scratch/refused.jsonl"
	holds "$r_name: result" result "$scratch/refused.json"
	check "$r_name: the end is told" python3 -c '
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
result = json.load(open(sys.argv[2]))
end = lines[-1]
assert end["event"] == "end" and end["message"], end
assert (end["status"], end["exit_code"]) == (sys.argv[3], int(sys.argv[4])), end
assert [end[k] for k in ("id", "status", "exit_code", "message")] == [result[k] for k in ("id", "status", "exit_code", "message")]
assert not [e for e in lines if e["event"] == "started"], lines
assert len([e for e in lines if e["event"] == "denial"]) == len(result["denials"]) == (end["status"] == "banned"), lines
' "$scratch/refused.jsonl" "$scratch/refused.json" "$r_status" "$r_code"
}
refused "a banned command" banned 126 -- rm -rf /
refused "a banned script" banned 126 --shell 'rm -rf /'
refused "no such program" exited 127 -- no-such-program
refused "no program" exited 126 -- /etc/passwd
refused "no workspace" internal_error 125 -w /no/such/directory -- true
refused "no such option" internal_error 125 --no-such-option -- true
refused "no command" internal_error 125
refused "no root file system" internal_error 125 --rootfs /no/such/directory -- true
holds "the audit log" audit "$scratch/audit.jsonl"
finish
