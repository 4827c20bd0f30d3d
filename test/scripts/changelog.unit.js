import t from 'tap'
import { nextVersion, releaseChangelog } from '../../scripts/changelog.js'

t.test('the next version is an increment, or a higher version', async t => {
  for (const [wanted, version] of [
    ['patch', '1.2.4'],
    ['minor', '1.3.0'],
    ['major', '2.0.0'],
    ['1.10.0', '1.10.0'],
    ['1.2.3', '1.2.3'],
  ])
    t.equal(nextVersion('1.2.3', wanted), version)
  for (const wanted of ['', 'pathc', '1.2', 'v1.3.0', '1.03.0', '1.3.0-rc.1'])
    t.throws(() => nextVersion('1.2.3', wanted), {
      message: `the version is patch, minor, major or x.y.z, not "${wanted}"`,
    })
  t.throws(() => nextVersion('1.10.0', '1.9.0'), {
    message: /^version 1\.9\.0 is lower than the current one, 1\.10\.0$/,
  })
})

const HEAD = '# Changelog\n\n## [Unreleased]\n'

t.test('entries move below the version and its date', async t => {
  const entries = '### Added\n\n- A thing.\n\n### Fixed\n\n- Another one,\n  in two lines.\n'
  const old = '## [1.2.3] - 2026-01-01\n\n- The first.\n'
  const { text, notes } = releaseChangelog(`${HEAD}\n${entries}\n${old}`, '1.3.0', '2026-11-23')
  t.equal(text, `${HEAD}\n## [1.3.0] - 2026-11-23\n\n${entries}\n${old}`)
  t.equal(notes, entries.trim())
  t.equal(
    releaseChangelog(`${HEAD}\n- A.\n`, '1.0.0', '2026-11-23').text,
    `${HEAD}\n## [1.0.0] - 2026-11-23\n\n- A.\n`,
  )
})

t.test('refuses a CHANGELOG without entries', async t => {
  const refused = (/** @type {string} */ text, /** @type {RegExp} */ message) =>
    t.throws(() => releaseChangelog(text, '1.3.0', '2026-11-23'), { message })
  refused('# Changelog\n', /^CHANGELOG\.md has no section "## \[Unreleased\]"$/)
  refused(HEAD, /nothing to release/)
  refused(`${HEAD}\n### Added\n\n## [1.2.3] - 2026-01-01\n\n- The first.\n`, /nothing to release/)
  refused(`${HEAD}\n- A.\n\n## [1.3.0] - 2026-01-01\n`, /already has a section for version 1\.3\.0/)
})
