// Compiles contracts/*.sol into contracts.json: node compile.js <a folder with npm's solc installed>
const fs = require("fs");
const path = require("path");
const solc = require(path.join(path.resolve(process.argv[2]), "node_modules", "solc"));

const folder = path.join(__dirname, "contracts");
const sources = {};
for (const name of fs.readdirSync(folder).sort()) {
  sources[name] = { content: fs.readFileSync(path.join(folder, name), "utf8") };
}
const settings = {
  evmVersion: "paris",
  optimizer: { enabled: true, runs: 200 },
  metadata: { appendCBOR: false, bytecodeHash: "none" },
  outputSelection: { "*": { "*": ["evm.bytecode.object", "evm.methodIdentifiers"] } },
};
const input = { language: "Solidity", sources, settings };
const output = JSON.parse(solc.compile(JSON.stringify(input)));
const failures = (output.errors || []).filter((one) => one.severity === "error");
if (failures.length) {
  console.error(failures.map((one) => one.formattedMessage).join("\n"));
  process.exit(1);
}
const contracts = {};
for (const file of Object.keys(output.contracts).sort()) {
  for (const [name, made] of Object.entries(output.contracts[file])) {
    if (made.evm.bytecode.object) {
      contracts[name] = { methods: made.evm.methodIdentifiers, bytecode: made.evm.bytecode.object };
    }
  }
}
const lines = Object.keys(contracts).sort().map((name) => `${JSON.stringify(name)}: ${JSON.stringify(contracts[name])}`);
fs.writeFileSync(path.join(__dirname, "contracts.json"), `{\n${lines.join(",\n")}\n}\n`);
console.log(`${lines.length} contracts, compiled by solc ${solc.version()}`);
