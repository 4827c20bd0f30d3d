// The next version, and the CHANGELOG of a release.

const VERSION = /^(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)$/
const UNRELEASED = '## [Unreleased]'

/** Its message is one line. */
export class ReleaseError extends Error {}

/** @param {string} version x.y.z */
const parseVersion = version => version.split('.').map(Number)

/** Negative: a is lower. @param {string} a x.y.z @param {string} b x.y.z */
function compareVersions(a, b) {
  const [left, right] = [parseVersion(a), parseVersion(b)]
  return left[0] - right[0] || left[1] - right[1] || left[2] - right[2]
}

/**
 * @param {string} current x.y.z
 * @param {string} requested `patch`, `minor`, `major`, or x.y.z, which may be the current version for a first release
 * @throws {ReleaseError}
 */
export function nextVersion(current, requested) {
  const [major, minor, patch] = parseVersion(current)
  if (requested === 'major') return `${major + 1}.0.0`
  if (requested === 'minor') return `${major}.${minor + 1}.0`
  if (requested === 'patch') return `${major}.${minor}.${patch + 1}`
  if (!VERSION.test(requested))
    throw new ReleaseError(`the version is patch, minor, major or x.y.z, not "${requested}"`)
  if (compareVersions(requested, current) < 0)
    throw new ReleaseError(`version ${requested} is lower than the current one, ${current}`)
  return requested
}

/**
 * Moves the entries of "Unreleased" under a heading with version and date.
 * @param {string} text of CHANGELOG.md
 * @param {string} version x.y.z @param {string} date YYYY-MM-DD
 * @returns {{text: string, notes: string}} `notes`: entries of the release
 * @throws {ReleaseError}
 */
export function releaseChangelog(text, version, date) {
  const lines = text.split('\n')
  const start = lines.indexOf(UNRELEASED)
  if (start < 0) throw new ReleaseError(`CHANGELOG.md has no section "${UNRELEASED}"`)
  if (lines.some(line => line.startsWith(`## [${version}]`) || line.startsWith(`## ${version} `)))
    throw new ReleaseError(`CHANGELOG.md already has a section for version ${version}`)
  const next = lines.findIndex((line, i) => i > start && line.startsWith('## '))
  const section = lines.slice(start + 1, next < 0 ? lines.length : next)
  if (!section.some(line => line.startsWith('- ')))
    throw new ReleaseError('CHANGELOG.md has no entry under "Unreleased": there is nothing to release')
  lines.splice(start + 1, 0, '', `## [${version}] - ${date}`)
  return { text: lines.join('\n'), notes: section.join('\n').trim() }
}
