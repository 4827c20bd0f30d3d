// Loads the optional dependency uWebSockets.js, or explains the failure.

/** First upstream release with a binary for Node.js 26; has none for 20. */
const RELEASE = 'v20.67.0'
const RELEASE_NODE = 26
const TARBALL = `https://github.com/uNetworking/uWebSockets.js/archive/refs/tags/${RELEASE}.tar.gz`
const IS_DEPENDENCY = import.meta.url.includes('/node_modules/')

/** @param {boolean} isDependency */
export const installCommand = (isDependency = IS_DEPENDENCY) =>
  isDependency
    ? `npm pkg set "overrides[uWebSockets.js]=${TARBALL}" && npm install`
    : `npm install uWebSockets.js@${TARBALL}`

/**
 * @param {any} error of its `import`
 * @param {object} [options]
 * @param {string} [options.version] of Node.js
 * @param {string} [options.platform] and architecture
 * @param {boolean} [options.isDependency] of another program
 * @returns {string} the reason and the fix, without a full stop
 */
export function whyNot(
  error,
  { version = process.version, platform = `${process.platform} ${process.arch}`, isDependency } = {},
) {
  const message = String(error?.message ?? error)
  const node = Number(/^v(\d+)/.exec(version)?.[1])
  const library = /(GLIBC|GLIBCXX|CXXABI)_([\d.]+)'? not found/.exec(message)
  if (library?.[1] === 'GLIBC')
    return `uWebSockets.js needs glibc ${library[2]}: ${node > 20 ? 'Debian 13 or Node.js 20' : 'a newer distribution'}`
  if (library !== null)
    return `uWebSockets.js needs a newer libstdc++ (${library[1]}_${library[2]}): Debian 13`
  if (error?.code === 'ERR_MODULE_NOT_FOUND')
    return 'uWebSockets.js is not installed: install without --omit=optional'
  // Its loader requires a file for the platform and Node.js ABI.
  if (/Cannot find module '[^']*uws_[^']*\.node'/.test(message)) {
    if (node === RELEASE_NODE)
      return `uWebSockets.js has no binary for Node.js ${node}: ${installCommand(isDependency)}`
    return `uWebSockets.js has no binary for Node.js ${node} on ${platform}: use Node.js 24 on Debian 13`
  }
  if (/ld-linux|musl|symbol not found/i.test(message))
    return 'uWebSockets.js needs glibc, which this system does not have: use an image of Debian 13'
  const lines = message.split('\n').map(line => line.replace(/^[\s:-]+/, '').trim())
  return `uWebSockets.js does not load: ${lines.findLast(line => line !== '') ?? 'no reason given'}`
}

/** @param {() => Promise<any>} [load] @returns {Promise<{uws: typeof import('uWebSockets.js') | null, why: string}>} */
export async function loadUws(load = () => import('uWebSockets.js')) {
  try {
    return { uws: (await load()).default, why: '' }
  } catch (error) {
    return { uws: null, why: whyNot(error) }
  }
}
