// Versions and the CHANGELOG, for release.js: pure functions.

const VERSION = /^(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)$/
const UNRELEASED = '## [Unreleased]'

/** A reason to refuse a release: one line. */
export class ReleaseError extends Error {}

/** @param {string} version @returns {number[]} */
const numbersOf = version => version.split('.').map(Number)

/** @param {string} a @param {string} b @returns {number} negative: a is lower */
export function compareVersions(a, b) {
  const [left, right] = [numbersOf(a), numbersOf(b)]
  return left[0] - right[0] || left[1] - right[1] || left[2] - right[2]
}

/**
 * @param {string} current x.y.z
 * @param {string} wanted `patch`, `minor`, `major`, or x.y.z: greater than the current one, or the current one as the
 *   first release
 * @returns {string} x.y.z
 * @throws {ReleaseError}
 */
export function nextVersion(current, wanted) {
  const [major, minor, patch] = numbersOf(current)
  if (wanted === 'major') return `${major + 1}.0.0`
  if (wanted === 'minor') return `${major}.${minor + 1}.0`
  if (wanted === 'patch') return `${major}.${minor}.${patch + 1}`
  if (!VERSION.test(wanted))
    throw new ReleaseError(`the version is patch, minor, major or x.y.z, not "${wanted}"`)
  if (compareVersions(wanted, current) < 0)
    throw new ReleaseError(`version ${wanted} is lower than the current one, ${current}`)
  return wanted
}

/**
 * Moves the entries of "Unreleased" under a version and its date.
 * @param {string} text of CHANGELOG.md
 * @param {string} version x.y.z
 * @param {string} date YYYY-MM-DD
 * @returns {{text: string, notes: string}} the new text, and the entries
 * @throws {ReleaseError} no section "Unreleased", no entry in it, or the version is in the file
 */
export function releaseChangelog(text, version, date) {
  const lines = text.split('\n')
  const start = lines.indexOf(UNRELEASED)
  if (start < 0) throw new ReleaseError(`CHANGELOG.md has no section "${UNRELEASED}"`)
  if (lines.some(line => line.startsWith(`## [${version}]`) || line.startsWith(`## ${version} `)))
    throw new ReleaseError(`CHANGELOG.md has a section of version ${version} already`)
  const next = lines.findIndex((line, i) => i > start && line.startsWith('## '))
  const section = lines.slice(start + 1, next < 0 ? lines.length : next)
  if (!section.some(line => line.startsWith('- ')))
    throw new ReleaseError('CHANGELOG.md has no entry under "Unreleased": there is nothing to release')
  lines.splice(start + 1, 0, '', `## [${version}] - ${date}`)
  return { text: lines.join('\n'), notes: section.join('\n').trim() }
}
