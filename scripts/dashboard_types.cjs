// The first half of scripts/dashboard_types.sh: looks up names in Grafana's registries, and writes TypeScript in
// which every dashboard, panel option and override is an object literal of Grafana's own type, for tsc.
"use strict";
const fs = require("fs");
const path = require("path");
const { JSDOM } = require("jsdom");

// @grafana/data expects a browser.
const { window } = new JSDOM("<html><head></head><body></body></html>", { url: "http://localhost" });
for (const [name, value] of Object.entries({ window, document: window.document, navigator: window.navigator })) {
  Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
}
const grafana = require("@grafana/data");

const TYPES = "./node_modules/@grafana/schema/dist/types/raw";
const KINDS = {
  timeseries: "timeseries", stat: "stat", table: "table", barchart: "barchart", histogram: "histogram",
  "state-timeline": "statetimeline", text: "text",
};
const OWN = { stat: false, text: false }; // panels without field options of their own
const units = new Set(grafana.getValueFormats().flatMap((c) => c.submenu.map((f) => f.value)));
const transformers = new Set(Object.values(grafana.standardTransformers).map((t) => t.id));
const matchers = new Set(Object.values(grafana.FieldMatcherID));
const reducers = new Set(Object.values(grafana.ReducerID));
const problems = [];
const need = (holds, what) => { if (!holds) problems.push(what); };

const lines = [
  `import type * as dash from "${TYPES}/dashboard/x/types.gen";`,
  ...Object.entries(KINDS).map(([kind, at]) =>
    `import type * as ${at} from "${TYPES}/composable/${at}/panelcfg/x/types.gen";`),
  "// An enum takes its literal; whatever has a default may be left out.",
  "type Loose<T> = T extends string ? `${T}` : T extends number | boolean | null | undefined ? T",
  "  : T extends (infer E)[] ? Loose<E>[] : T extends object ? { [K in keyof T]: Loose<T[K]> } : T;",
  "type Note = Omit<Loose<dash.AnnotationQuery>, 'target'> & { target?: Record<string, unknown> };",
  "type Board = Omit<Loose<dash.Dashboard>, 'annotations'> & { annotations: { list: Note[] } };",
];
const say = (type, value) => lines.push(`{ const it: ${type} = ${JSON.stringify(value)}; void it; }`);

for (const file of process.argv.slice(2)) {
  const board = JSON.parse(fs.readFileSync(file, "utf8"));
  const name = path.basename(file);
  say("Board", board);
  const all = board.panels.flatMap((p) => [p, ...(p.panels || [])]).filter((p) => p.type !== "row");
  for (const panel of all) {
    const where = `${name}: ${panel.title}`;
    const kind = KINDS[panel.type];
    need(kind, `${where}: no such kind of panel here: ${panel.type}`);
    if (!kind) continue;
    say(`Loose<${kind}.Options>`, panel.options);
    const { defaults = {}, overrides = [] } = panel.fieldConfig || {};
    const custom = OWN[panel.type] === false ? "Record<string, never>" : `Partial<Loose<${kind}.FieldConfig>>`;
    say(custom, defaults.custom || {});
    const checkUnit = (unit) => need(/^(suffix|prefix|si|time|count|currency):/.test(unit) || units.has(unit),
      `${where}: no such unit: ${unit}`);
    if (defaults.unit) checkUnit(defaults.unit);
    for (const { matcher, properties } of overrides) {
      need(matchers.has(matcher.id), `${where}: no such matcher: ${matcher.id}`);
      if (matcher.id === "byRegexp") grafana.stringToJsRegex(matcher.options);
      for (const { id, value } of properties) {
        if (id === "unit") checkUnit(value);
        if (id.startsWith("custom.")) say(custom, { [id.slice(7)]: value });
        else say("Partial<Loose<dash.FieldConfig>>", { [id]: value });
      }
    }
    for (const t of panel.transformations || []) {
      need(transformers.has(t.id), `${where}: no such transformation: ${t.id}`);
    }
    const legend = (panel.options.legend || {}).calcs || [];
    for (const calc of [...legend, ...((panel.options.reduceOptions || {}).calcs || [])]) {
      need(reducers.has(calc), `${where}: no such calculation: ${calc}`);
    }
  }
}
lines.push("export {};");
fs.writeFileSync("dashboards.ts", lines.join("\n") + "\n");
fs.writeFileSync("tsconfig.json", JSON.stringify({
  compilerOptions: { strict: true, noEmit: true, module: "esnext", moduleResolution: "bundler", target: "es2022",
    skipLibCheck: true, types: [] },
  files: ["dashboards.ts"],
}));
for (const problem of problems) console.error(problem);
process.exit(problems.length ? 1 : 0);
