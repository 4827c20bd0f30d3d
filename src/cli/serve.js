import { COMMAND } from '../base/version.js'
import { configureServer, generateKey } from '../config/profile.js'
import { CONFIG_FLAG } from './command.js'

/** @import { Command } from './command.js' */

/** @type {Command} */
export const serve = {
  name: 'serve',
  summary: 'run the gateway (the default)',
  help: `Usage: ${COMMAND} serve [flags]

Runs the gateway: one worker per core, all on one port. Without a configuration it uses the development profile: it
listens on 127.0.0.1 only, accepts anonymous clients from pages of this machine, generates an API key and serves a demo
page.

  -c, --config FILE      configuration, .json, .yaml or .yml
      --workers N        worker processes; 0: one per core
      --dev              development profile as the base of a file or variables
      --port PORT        port to listen on
      --address ADDRESS  address to listen on
      --log-level LEVEL  trace, debug, info, warn, error, fatal or none
      --hooks FILE       module with your handlers (docs/hooks.md)
      --csv FILE         append a row of statistics each second (docs/csv.md)
      --gc-interval T    collect garbage in each worker every T (30s, 1m), one worker after another
      --no-dashboard     print log lines instead of the dashboard
  -h, --help             print this text
  -V, --version          print the version

In a terminal it shows the dashboard, otherwise it prints log lines.

Flags override HALLEY_... variables, which override the file.

Examples:
  ${COMMAND} serve
  ${COMMAND} serve -c config.yaml --workers 4 --csv run.csv
  HALLEY_HTTP_SERVER_PORT=9000 ${COMMAND} serve
`,
  flags: {
    config: CONFIG_FLAG,
    dev: { type: 'boolean' },
    workers: { type: 'string' },
    port: { type: 'string' },
    address: { type: 'string' },
    'log-level': { type: 'string' },
    hooks: { type: 'string' },
    csv: { type: 'string' },
    'gc-interval': { type: 'string' },
    'no-dashboard': { type: 'boolean' },
  },

  async run({ env, cwd }, flags) {
    const sources = {
      file: flags.config,
      env,
      cwd,
      flags: {
        workers: flags.workers,
        'http_server.port': flags.port,
        'http_server.address': flags.address,
        'log.level': flags['log-level'],
        'hooks.module': flags.hooks,
        'stats.csv.file': flags.csv,
        'gc.interval': flags['gc-interval'],
      },
    }
    // A reload keeps the printed key.
    const options = { dev: flags.dev === true, key: generateKey() }
    const start = configureServer(sources, options)
    const reload = () => configureServer(sources, options)
    const { startPrimary } = await import('../processes/primary/serve.js')
    await startPrimary({ ...start, reload, dashboard: !flags['no-dashboard'] })
    return undefined
  },
}
