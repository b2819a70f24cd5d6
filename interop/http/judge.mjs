// Counts what the suite has written, and fails unless every scenario passed. `judge.mjs DIRECTORY`.
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

// How many scenarios each set has: fewer would mean that the suite was cut short.
const expected = { "2025-11-25": 33, "2026-07-28": 40, "2025-06-18": 27 };
const scored = { "2025-11-25": 30, "2026-07-28": 37, "2025-06-18": 27 };
// An extension that taut does not have. The suite itself does not score it.
const isTask = (scenario) => scenario.startsWith("tasks-");
// Skills are an extension as well.
const isSkill = (scenario) => scenario.startsWith("sep-2640-");

let bad = false;
for (const [set, count] of Object.entries(expected)) {
  const directory = join(process.argv[2], set);
  let scenarios = 0;
  let checks = 0;
  const failed = [];
  const warned = [];
  for (const entry of readdirSync(directory)) {
    const scenario = entry.replace(/^server-/, "").replace(/-\d{4}-\d\d-\d\dT.*$/, "");
    if (isTask(scenario) || isSkill(scenario)) continue;
    scenarios += 1;
    for (const check of JSON.parse(readFileSync(join(directory, entry, "checks.json"), "utf8"))) {
      checks += check.status === "SUCCESS" ? 1 : 0;
      const line = `${scenario} ${check.id}: ${check.errorMessage ?? check.description}`;
      if (check.status === "FAILURE") failed.push(line);
      if (check.status === "WARNING") warned.push(line);
    }
  }
  const others = scenarios - scored[set];
  console.log(
    `${set}: ${scenarios} scenarios (${scored[set]} scored, ${others} not), ${checks} checks passed, ` +
      `${failed.length} failed, ${warned.length} warnings`,
  );
  failed.forEach((line) => console.log(`  failed: ${line}`));
  warned.forEach((line) => console.log(`  warning: ${line}`));
  if (scenarios !== count) console.log(`  ${count} scenarios were expected`);
  bad ||= failed.length > 0 || scenarios !== count;
}
process.exit(bad ? 1 : 0);
