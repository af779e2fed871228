"""The official SDK's client against `allclear mcp`: `mcp_client.py PROGRAM MODE CALLS`. Prints what it saw, as JSON.

MODE is the SDK's: `auto` asks which revision the server speaks, `legacy` begins with an `initialize`. CALLS is a list of tools with their
arguments. The SDK itself holds each answer to the schema of its tool."""

import asyncio
import json
import os
import sys

from mcp import Client, MCPError, StdioServerParameters


async def main(program, mode, calls):
    server = StdioServerParameters(command=program, args=["mcp"], env=dict(os.environ))
    async with Client(server, mode=mode) as client:
        seen = {
            "version": client.protocol_version,
            "server": client.server_info.name,
            "instructions": client.instructions,
            "tools": [tool.model_dump(by_alias=True, exclude_none=True) for tool in (await client.list_tools()).tools],
        }
        if mode == "legacy":
            await client.send_ping()
        try:
            await client.call_tool("purge", {"name": "shop/web"})
        except MCPError as error:
            seen["unknown"] = error.error.code
        # All at once: more than are answered at a time.
        results = await asyncio.gather(*(client.call_tool(tool, arguments) for tool, arguments in calls))
        seen["results"] = [result.model_dump(by_alias=True, exclude_none=True) for result in results]
    print(json.dumps(seen))


asyncio.run(main(sys.argv[1], sys.argv[2], json.loads(sys.argv[3])))
