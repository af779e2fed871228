"""Asks Argo CD's Lua and Flux's CEL about objects, as those two do.

Argo CD gives a script the object as `obj`, and of Lua's libraries base, table and a small os, no strings:
https://github.com/argoproj/argo-cd/blob/master/util/lua/lua.go
Flux compares generations first, then asks inProgress, failed and current, and takes what is left for in progress:
https://github.com/fluxcd/pkg/blob/main/runtime/cel/status_evaluator.go

Reads {"argo": {Kind: {"health": LUA, "actions": …}}, "flux": {Kind: {…}}, "objects": […]} and prints one answer for each object.
"""

import copy
import json
import sys

import cel
from lupa import lua51


def tables(lua, value):
    """As Argo CD hands JSON to Lua."""
    if isinstance(value, dict):
        return lua.table_from({key: tables(lua, inner) for key, inner in value.items()})
    if isinstance(value, list):
        return lua.table_from([tables(lua, inner) for inner in value])
    return value


def plain(value):
    if lua51.lua_type(value) != "table":
        return value
    return {key: plain(inner) for key, inner in value.items()}


def run(script, obj):
    lua = lua51.LuaRuntime(unpack_returned_tuples=True)
    lua.execute("for _, name in ipairs({'string', 'io', 'debug', 'math', 'coroutine'}) do _G[name] = nil end")
    lua.execute("local date, time = os.date, os.time; os = {date = date, time = time}")
    lua.globals().obj = tables(lua, obj)
    return plain(lua.execute(script))


def flux(checks, obj):
    observed = obj.get("status", {}).get("observedGeneration")
    if observed is not None and observed != obj["metadata"].get("generation"):
        return "InProgress"
    for expression, answer in (("inProgress", "InProgress"), ("failed", "Failed"), ("current", "Current")):
        if expression in checks and cel.evaluate(checks[expression], copy.deepcopy(obj)) is True:
            return answer
    return "InProgress"


def answer(asked, obj):
    argo = asked["argo"][obj["kind"]]
    actions = argo["actions"]
    after = {one["name"]: run(one["action.lua"], obj)["metadata"].get("annotations", {}) for one in actions["definitions"]}
    return {
        "health": run(argo["health"], obj),
        "offered": {name: not how["disabled"] for name, how in run(actions["discovery.lua"], obj).items()},
        "after": after,
        "flux": flux(asked["flux"][obj["kind"]], obj),
    }


asked = json.load(sys.stdin)
json.dump([answer(asked, obj) for obj in asked["objects"]], sys.stdout)
