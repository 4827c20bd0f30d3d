// Makes a release: `npm run release -- patch|minor|major|x.y.z`, see CONTRIBUTING.md ("Release"). Checks everything
// first, so that a refusal changes nothing. Pushes and publishes nothing.

import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { nextVersion, ReleaseError, releaseChangelog } from './changelog.js'

const HELP = `Usage: npm run release -- VERSION [flags]

Moves the "Unreleased" entries of CHANGELOG.md under the version and today's date, sets the version in
package.json and package-lock.json, commits that and tags the commit. It pushes and publishes nothing.

VERSION is patch, minor, major, or x.y.z.

  --dry-run        check everything except the tests, and print the changes
  --test           run the linter and both test tiers first
  --branch NAME    branch to release from (default main)
  -h, --help       this text
`
const CHANGED = ['CHANGELOG.md', 'package.json', 'package-lock.json']
const CHECKS = ['lint', 'test', 'test:slow']

const root = fileURLToPath(new URL('..', import.meta.url))

/** @param {string[]} args @throws {ReleaseError} */
function git(...args) {
  try {
    return execFileSync('git', args, {
      cwd: root,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    }).trimEnd()
  } catch (error) {
    const reason = `${error.stderr ?? ''}`.trim().split('\n')[0] || error.message
    throw new ReleaseError(`git ${args[0]} failed: ${reason}`)
  }
}

/** @param {string} file */
const read = file => readFileSync(join(root, file), 'utf8')

/** @param {object} value */
const json = value => `${JSON.stringify(value, null, 2)}\n`

/** @param {string} branch @throws {ReleaseError} */
function checkTree(branch) {
  const current = git('rev-parse', '--abbrev-ref', 'HEAD')
  if (current !== branch)
    throw new ReleaseError(
      `the current branch is ${current}, not ${branch}; use --branch to release from another one`,
    )
  const changes = git('status', '--porcelain')
  if (changes !== '') {
    const files = changes.split('\n').map(line => line.slice(3))
    throw new ReleaseError(
      `uncommitted files: ${files.slice(0, 3).join(', ')}${files.length > 3 ? ' ...' : ''}`,
    )
  }
}

/** New texts by file, and the CHANGELOG entries. @param {string} version @throws {ReleaseError} */
function prepare(version) {
  const manifest = JSON.parse(read('package.json'))
  const lock = JSON.parse(read('package-lock.json'))
  if (lock.name !== manifest.name || lock.packages?.['']?.name !== manifest.name)
    throw new ReleaseError('package-lock.json and package.json name different packages: run npm install')
  manifest.version = lock.version = lock.packages[''].version = version
  const today = new Date().toISOString().slice(0, 10)
  const { text, notes } = releaseChangelog(read('CHANGELOG.md'), version, today)
  const texts = [text, json(manifest), json(lock)]
  return { files: new Map(CHANGED.map((file, i) => [file, texts[i]])), notes }
}

/** @throws {ReleaseError} one of them fails */
function runChecks() {
  for (const name of CHECKS) {
    console.log(`npm run ${name}`)
    const { status } = spawnSync('npm', ['run', '--silent', name], { cwd: root, stdio: 'inherit' })
    if (status !== 0) throw new ReleaseError(`npm run ${name} failed: nothing was changed`)
  }
}

/**
 * A failure restores branch and files.
 * @param {Map<string, string>} files @param {string} version @param {string} tag
 */
function commit(files, version, tag) {
  const before = git('rev-parse', 'HEAD')
  try {
    for (const [file, text] of files) writeFileSync(join(root, file), text)
    git('commit', '--quiet', '-m', `Release ${version}`, '--', ...CHANGED)
    git('tag', '--annotate', tag, '-m', `Release ${version}`)
  } catch (error) {
    git('reset', '--quiet', '--soft', before)
    git('restore', '--staged', '--worktree', '--', ...CHANGED)
    throw error
  }
}

/** @param {string[]} args @throws {ReleaseError} */
function release(args) {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      'dry-run': { type: 'boolean', default: false },
      test: { type: 'boolean', default: false },
      branch: { type: 'string', default: 'main' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  if (values.help) return console.log(HELP)
  if (positionals.length !== 1)
    throw new ReleaseError('exactly one VERSION is required: patch, minor, major or x.y.z')
  const { version: current } = JSON.parse(read('package.json'))
  const version = nextVersion(current, positionals[0])
  const tag = `v${version}`
  checkTree(values.branch)
  if (git('tag', '--list', tag) !== '') throw new ReleaseError(`tag ${tag} already exists`)
  const { files, notes } = prepare(version)
  if (values['dry-run'])
    return console.log(`${current} -> ${version}, tag ${tag}, changed: ${CHANGED.join(', ')}\n\n${notes}`)
  if (values.test) {
    runChecks()
    checkTree(values.branch)
  }
  commit(files, version, tag)
  console.log(`released ${version} as ${tag}. Next: git push --follow-tags && npm publish`)
}

try {
  release(process.argv.slice(2))
} catch (error) {
  // Unknown flag: the first sentence of the message names it.
  const usage = typeof error.code === 'string' && error.code.startsWith('ERR_PARSE_ARGS')
  if (!usage && !(error instanceof ReleaseError)) throw error
  console.error(`release: ${usage ? error.message.split('. ')[0] : error.message}`)
  process.exitCode = usage ? 2 : 1
}
