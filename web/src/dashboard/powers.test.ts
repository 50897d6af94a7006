import assert from "node:assert/strict";
import { test } from "node:test";
import { powers } from "./powers.ts";

test("lines that give an agent more are found, others are not", () => {
  const diff = '+++ b/agent.toml\n@@ -1 +1,4 @@\n-tool_groups = []\n+tool_groups = ["web_tools"]\n+model = "opus"\n+[[mounts]]\n+source = "/home"\n network = "host"\n';
  assert.deepEqual(powers(diff), ['tool_groups = ["web_tools"]', "[[mounts]]", 'source = "/home"']);
  assert.deepEqual(powers(""), []);
});
