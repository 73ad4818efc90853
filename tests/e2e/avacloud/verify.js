// The official client's own check of messages to webhooks. Standard input: {"secret": hex, "messages": [{"body": text,
// "signature": text}]}. Usage: node verify.js <file for one JSON array>: for each message whether the signature is valid,
// its ID, and why it does not fit the client's types, if it does not. The client's check writes to standard output.
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const SDK = '@avalabs/avacloud-sdk';
const { webhookAddressActivityResponseFromJSON: read } = require(
  `${SDK}/models/components/webhookaddressactivityresponse.js`,
);
const { isValidSignature } = require(`${SDK}/utils/isvalidsignature.js`);

const { secret, messages } = JSON.parse(readFileSync(0, 'utf8'));
const results = messages.map(({ body, signature }) => {
  const parsed = read(body);
  return {
    isValid: isValidSignature(secret, signature, JSON.parse(body)),
    messageId: parsed.ok ? parsed.value.messageId : '',
    error: parsed.ok ? '' : String(parsed.error),
  };
});
writeFileSync(process.argv[2], JSON.stringify(results));
