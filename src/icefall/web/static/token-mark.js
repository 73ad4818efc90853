// How a token is named wherever it is listed. Anyone may take a name: its picture, the last digits of its address and,
// where another token of that name is on the operator's list, a warning tell two of one name apart.
import { h } from "./dom.js";
import { identicon } from "./identicon.js";
import { address, badge, clip, to } from "./parts.js";
import { tokenLogo } from "./pictures.js";

// The logo of the operator's list, else the picture of the address.
export const tokenPicture = (chain, token, size = 16) =>
  tokenLogo(chain, token, size, () => identicon(token.address, size));

export const tokenPage = (chain, token) => ((token.ercType || "ERC-20") === "ERC-20" ? to.token : to.collection)(chain, token.address);

export function tokenMark(chain, token) {
  return h(
    "span.who.token",
    {},
    tokenPicture(chain, token),
    h("a", { href: tokenPage(chain, token), title: token.address }, clip(token.name || token.symbol || "Unnamed token", 40)),
    h("span.mono.quiet.digits", {}, token.address.slice(-4)),
    token.listedNamesake && badge("not the listed one", "warn"),
  );
}

// Above the page of a token that is not the one its name stands for; null for all others.
export function namesakeWarning(chain, token) {
  if (!token?.listedNamesake) return null;
  return h(
    "p.notice",
    { role: "note" },
    h("strong", {}, "Another token has this name. "),
    "The token list of this installation has ",
    address(chain, { address: token.listedNamesake, name: token.name, decimals: 0 }),
    ", and not this one.",
  );
}
