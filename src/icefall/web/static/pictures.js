// Pictures of NFTs and tokens. An <img> runs no script, whatever the file contains. What a contract or a list embeds is
// shown as it is; what lies on another host is fetched by this installation, because that host would learn who looks.
import { h } from "./dom.js";
import { apiKey, baseOf, config, path } from "./api.js";
import { clip } from "./parts.js";

const EMBEDDED = /^data:image\/(png|jpeg|gif|webp|avif|svg\+xml)[;,]/i;
const REMOTE = /^(https?|ipfs):\/\//i;
const SIZE_MAX = 2_000_000;

const isEmbedded = (uri) => EMBEDDED.test(uri) && uri.length <= SIZE_MAX;

// Null where there is no picture that can be shown. `target`: where the installation has it, if it is on another host.
function imageOf(uri, target, properties, failed) {
  const text = String(uri || "").trim();
  const isRemote = REMOTE.test(text) && config.hasPictures;
  if (!isEmbedded(text) && !isRemote) return null;
  const image = h("img", { decoding: "async", ...properties });
  image.addEventListener("error", () => failed(image));
  if (isEmbedded(text)) image.src = text;
  else if (apiKey()) withKey(target).then((src) => (image.src = src), () => failed(image));
  else image.src = baseOf("data") + target;
  return image;
}

// An <img> sends no key.
async function withKey(target) {
  const reply = await fetch(baseOf("data") + target, { headers: { "x-service-api-key": apiKey() } });
  if (!reply.ok) throw new Error(String(reply.status));
  const content = await reply.blob();
  return new Promise((read, failed) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => read(reader.result));
    reader.addEventListener("error", failed);
    reader.readAsDataURL(content);
  });
}

function hostOf(uri) {
  try {
    return new URL(uri).host;
  } catch {
    return "";
  }
}

// `name` describes the picture for those who cannot see it; `mark` stands in its place.
export function nftPicture(chain, token, name, mark = "") {
  const uri = token.metadata?.imageUri;
  const target = path`/v1/chains/${chain}/nfts/collections/${token.address}/tokens/${token.tokenId}/picture`;
  const box = h("div.picture", {}, mark && h("span.mark", { "aria-hidden": "true" }, mark));
  const say = (text) => box.append(h("span.quiet", {}, text));
  const image = imageOf(uri, target, { alt: clip(name || "NFT", 100), loading: "lazy" }, () => {
    box.replaceChildren();
    say("The picture cannot be shown");
  });
  if (image) box.replaceChildren(image);
  else if (REMOTE.test(uri || "") && hostOf(uri)) say(`Picture at ${clip(hostOf(uri), 40)}`);
  else say("No picture");
  return box;
}

// The logo of the operator's list; where there is none, or it does not load, `instead()`.
export function tokenLogo(chain, token, size, instead) {
  const target = path`/v1/chains/${chain}/tokens/${token.address}/logo`;
  const properties = { class: "logo", alt: "", width: size, height: size };
  return imageOf(token.logoUri, target, properties, (image) => image.replaceWith(instead())) || instead();
}
