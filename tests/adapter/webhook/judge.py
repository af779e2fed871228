"""Judges what webhooks sent: the official SDK of CloudEvents reads it, and published schemas hold it.

Reads {"own": schema, "cdevents": {type: schema}, "custom": schema, "sent": [{"format", "headers", "body"}]}, and writes what the SDK read
and what is wrong with each.
"""

import json
import sys

from cloudevents.core.bindings.http import HTTPMessage, from_http_event
from jsonschema import Draft202012Validator, FormatChecker


def strict(schema):
    """The same schema, for which a member that it does not name is wrong: it has to be written down first."""
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: strict(one) for name, one in schema.items()}
    if schema.get("type") == "object" and "properties" in schema:
        closed.setdefault("additionalProperties", False)
    return closed


def wrong(schema, document):
    checked = Draft202012Validator(schema, format_checker=FormatChecker())
    return [f"{error.json_path}: {error.message}" for error in checked.iter_errors(document)]


def judged(asked, sent):
    document = json.loads(sent["body"])
    if sent["format"] == "json":
        return {"wrong": wrong(strict(asked["own"]), document) + wrong(asked["own"], document)}
    event = from_http_event(HTTPMessage(headers=sent["headers"], body=sent["body"].encode()))
    names = ["specversion", "id", "source", "type", "subject"]
    read = {name: event.get_attributes()[name] for name in names}
    read["time"] = event.get_time().isoformat(timespec="milliseconds").replace(".000", "").replace("+00:00", "Z")
    read["data"] = event.get_data()
    if sent["format"] == "cdevents":
        kind = document["context"]["type"]
        schema = asked["custom"] if kind.startswith("dev.cdeventsx.") else asked["cdevents"][kind]
        return {"read": read, "wrong": wrong(schema, document)}
    return {"read": read, "wrong": []}


asked = json.load(open(sys.argv[1]))
for schema in [asked["own"], asked["custom"], *asked["cdevents"].values()]:
    Draft202012Validator.check_schema(schema)
json.dump([judged(asked, sent) for sent in asked["sent"]], sys.stdout)
