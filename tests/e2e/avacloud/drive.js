// The official client against the chain data interface: every call it is given, all pages walked.
// Usage: node drive.js <base url> <calls as JSON: [[method, request], ...]> [API key]. Prints one JSON array: what came back.
// The client checks every answer against its own schemas and throws where one does not fit.
import { AvaCloudSDK } from '@avalabs/avacloud-sdk';

const [serverURL, calls] = [process.argv[2], JSON.parse(process.argv[3])];
const sdk = new AvaCloudSDK({ serverURL, apiKey: process.argv[4], retryConfig: { strategy: 'none' } });

const results = [];
for (const [method, request] of calls) {
  const names = method.split('.');
  const name = names.pop();
  const part = names.reduce((at, one) => at[one], sdk);
  const one = { method, pages: [] };
  try {
    const answer = request === null ? await part[name]({ serverURL }) : await part[name](request, { serverURL });
    if (answer && typeof answer[Symbol.asyncIterator] === 'function') {
      for await (const page of answer) one.pages.push(page.result);
    } else {
      one.pages.push(answer);
    }
  } catch (error) {
    const issues = error.cause?.issues ?? error.cause?.errors;
    one.error = { name: error.name, message: String(error.message).slice(0, 500), status: error.statusCode, issues };
  }
  results.push(one);
}
process.stdout.write(JSON.stringify(results));
