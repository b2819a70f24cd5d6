// Counts what the suite has written, and fails unless every scenario passed. `judge.mjs server|bridge|client DIRECTORY`.
// A scenario has passed if at least one of its checks has the status SUCCESS, none has FAILURE, and none has WARNING or
// SKIPPED except those that are named below, each with the reason why it cannot be otherwise.
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

// How many scenarios each set has: fewer would mean that the suite was cut short. `scored` is what the suite counts.
const sets = {
  server: {
    "2025-11-25": { scenarios: 33, scored: 30 },
    "2026-07-28": { scenarios: 40, scored: 37 },
    "2025-06-18": { scenarios: 27, scored: 27 },
  },
  // Not scored: client-credentials-basic and json-schema-2020-12-preservation.
  client: {
    "2025-11-25": { scenarios: 20, scored: 18 },
    "2026-07-28": { scenarios: 34, scored: 32 },
    "2025-03-26": { scenarios: 2, scored: 2 },
  },
};
sets.bridge = sets.server;
// Scenarios that cannot be passed, and why: they may warn, and need no check with success. They must not fail.
const unexercised = {
  // The server behind a bridge cannot close the streams of its clients and tell them when to come back, which the scenario
  // waits for. A native server can.
  bridge: ["server-sse-polling"],
};
// Extensions that taut does not have, and that the suite itself does not score: tasks, skills, and four kinds of logins.
const leftOut = [
  /^tasks-/,
  /^sep-2640-/,
  /^auth\/(client-credentials-jwt|enterprise-managed-authorization|dpop|dpop-nonce|wif-jwt-bearer)$/,
];
// Checks that cannot have the status SUCCESS, and why.
const allowed = [
  // The scenario answers a question that was never asked, and sends no requestState. A server that seals its state, as taut
  // does, asks again then: it cannot know what the answer belongs to. That stray answers beside a good one are passed over is
  // tested by mrtr_12_stray_answers_are_passed_over in crates/taut/tests/asking/states.rs.
  /^input-required-result-ignore-extra-params sep-2322-ignore-unexpected-params WARNING:/,
  // The scenario runs in 2026-07-28, which has neither method.
  /^http-standard-headers sep-2243-client-includes-standard-headers SKIPPED: Client did not send a (initialize|notifications\/initialized) request/,
];

const [side, results] = process.argv.slice(2);
let bad = false;
for (const [set, { scenarios: count, scored }] of Object.entries(sets[side])) {
  const directory = join(results, set);
  const seen = new Set();
  let checks = 0;
  const faults = [];
  for (const entry of readdirSync(directory, { recursive: true })) {
    if (!existsSync(join(directory, entry, "checks.json"))) continue;
    const scenario = entry.replace(/^server-/, "").replace(/-\d{4}-\d\d-\d\dT.*$/, "");
    if (leftOut.some((pattern) => pattern.test(scenario))) continue;
    seen.add(scenario);
    const excused = unexercised[side]?.includes(scenario);
    let passed = 0;
    for (const check of JSON.parse(readFileSync(join(directory, entry, "checks.json"), "utf8"))) {
      if (check.status === "SUCCESS") passed += 1;
      const line = `${scenario} ${check.id} ${check.status}: ${check.errorMessage ?? check.description}`;
      if (excused && check.status === "WARNING") continue;
      // INFO is no verdict.
      if (["SUCCESS", "INFO"].includes(check.status) || allowed.some((pattern) => pattern.test(line))) continue;
      faults.push(line);
    }
    if (passed === 0 && !excused) faults.push(`${scenario}: nothing was checked with success`);
    checks += passed;
  }
  const scenarios = seen.size;
  const not = scenarios - scored;
  console.log(
    `${set}: ${scenarios} scenarios (${scored} scored, ${not} not), ${checks} checks passed, ${faults.length} faults`,
  );
  faults.forEach((line) => console.log(`  ${line}`));
  if (scenarios !== count) console.log(`  ${count} scenarios were expected`);
  bad ||= faults.length > 0 || scenarios !== count;
}
process.exit(bad ? 1 : 0);
