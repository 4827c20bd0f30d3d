// `npm run release` in a clone of a small repository.

import { execFileSync, spawnSync } from 'node:child_process'
import { appendFileSync, cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { testdir } from '../kit/folders.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const IDENTITY = {
  GIT_AUTHOR_NAME: 'A',
  GIT_AUTHOR_EMAIL: 'a@localhost',
  GIT_COMMITTER_NAME: 'A',
  GIT_COMMITTER_EMAIL: 'a@localhost',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_SYSTEM: '/dev/null',
}
const env = { ...process.env, ...IDENTITY }

/** @param {string} cwd @param {...string} args */
const git = (cwd, ...args) => execFileSync('git', args, { cwd, env, encoding: 'utf8' }).trim()

/** @param {any} t @returns {{folder: string, version: string, release: (...args: string[]) => any}} a clone */
function clone(t) {
  const base = testdir(t)
  const [origin, folder] = [join(base, 'origin'), join(base, 'clone')]
  for (const name of ['package.json', 'package-lock.json', 'CHANGELOG.md', 'scripts'])
    cpSync(join(root, name), join(origin, name), { recursive: true })
  // The section of the repository is empty after a release.
  const changelog = join(origin, 'CHANGELOG.md')
  const text = readFileSync(changelog, 'utf8')
  writeFileSync(changelog, text.replace('## [Unreleased]\n', '## [Unreleased]\n\n- An entry of the test.\n'))
  git(origin, 'init', '--quiet', '--initial-branch=main')
  git(origin, 'add', '.')
  git(origin, 'commit', '--quiet', '-m', 'first')
  git(base, 'clone', '--quiet', origin, folder)
  const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const release = (/** @type {string[]} */ ...args) =>
    spawnSync(process.execPath, ['scripts/release.js', ...args], { cwd: folder, env, encoding: 'utf8' })
  return { folder, version, release }
}

t.test('a release is a commit with version and CHANGELOG, and a tag', async t => {
  const { folder, version, release } = clone(t)
  const [major, minor] = version.split('.').map(Number)
  const next = `${major}.${minor + 1}.0`
  const head = git(folder, 'rev-parse', 'HEAD')

  const dry = release('minor', '--dry-run')
  t.match(dry.stdout, `${version} -> ${next}, tag v${next}`)
  t.match(dry.stdout, '- An entry of the test.')
  t.equal(git(folder, 'rev-parse', 'HEAD'), head)
  t.equal(git(folder, 'status', '--porcelain'), '')

  const done = release('minor')
  t.equal(done.stderr, '')
  t.match(done.stdout, `released ${next} as v${next}. Next: git push --follow-tags && npm publish`)
  t.equal(git(folder, 'status', '--porcelain'), '')
  t.equal(git(folder, 'log', '-1', '--format=%s'), `Release ${next}`)
  t.equal(git(folder, 'rev-parse', 'HEAD^'), head)
  t.equal(git(folder, 'describe', '--exact-match'), `v${next}`)
  t.same(git(folder, 'show', '--format=', '--name-only', 'HEAD').split('\n').sort(), [
    'CHANGELOG.md',
    'package-lock.json',
    'package.json',
  ])
  const read = (/** @type {string} */ name) => JSON.parse(readFileSync(join(folder, name), 'utf8'))
  const lock = read('package-lock.json')
  t.same([read('package.json').version, lock.version, lock.packages[''].version], [next, next, next])
  t.equal(read('package.json').scripts.release, 'node scripts/release.js')
  // Only the versions differ.
  t.equal(git(folder, 'show', '--format=', '--numstat', 'HEAD', '--', 'package.json').split('\t')[0], '1')
  t.equal(
    git(folder, 'show', '--format=', '--numstat', 'HEAD', '--', 'package-lock.json').split('\t')[0],
    '2',
  )
  const changelog = readFileSync(join(folder, 'CHANGELOG.md'), 'utf8')
  const escaped = next.replaceAll('.', '\\.')
  t.match(
    changelog,
    new RegExp(`## \\[Unreleased\\]\n\n## \\[${escaped}\\] - \\d{4}-\\d\\d-\\d\\d\n\n- An entry of the test`),
  )

  const again = release('patch')
  t.equal(again.status, 1)
  t.match(
    again.stderr,
    /^release: CHANGELOG\.md has no entry under "Unreleased": there is nothing to release\n$/,
  )
})

t.test('a refused release prints one line and changes nothing', async t => {
  const { folder, version, release } = clone(t)
  const head = git(folder, 'rev-parse', 'HEAD')
  const refused = (/** @type {string[]} */ args, /** @type {RegExp} */ message) => {
    const { status, stdout, stderr } = release(...args)
    t.not(status, 0)
    t.equal(stdout, '')
    t.match(stderr, message)
    t.equal(stderr.split('\n').length, 2, 'one line')
    t.equal(git(folder, 'rev-parse', 'HEAD'), head)
  }
  refused([], /exactly one VERSION is required/)
  refused(['latest'], /not "latest"/)
  refused(['0.0.1'], /lower than the current one/)
  refused(['minor', '--force'], /Unknown option '--force'/)
  git(folder, 'tag', 'v99.0.0')
  refused(['99.0.0'], /tag v99\.0\.0 already exists/)
  appendFileSync(join(folder, 'CHANGELOG.md'), 'more\n')
  refused(['minor'], /uncommitted files: CHANGELOG\.md\n/)
  git(folder, 'checkout', '--quiet', '--', 'CHANGELOG.md')
  writeFileSync(join(folder, 'stray'), '')
  refused(['minor'], /uncommitted files: stray\n/)
  git(folder, 'clean', '--quiet', '--force')
  git(folder, 'checkout', '--quiet', '-b', 'other')
  refused(['minor'], /the current branch is other, not main/)
  git(folder, 'checkout', '--quiet', 'main')
  // A hook that refuses the commit: files and index are as before.
  writeFileSync(join(folder, '.git/hooks/pre-commit'), '#!/bin/sh\necho no >&2\nexit 1\n', { mode: 0o755 })
  refused(['minor'], /^release: git commit failed: no\n$/)
  t.equal(git(folder, 'status', '--porcelain'), '')
  t.equal(JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')).version, version)
})
