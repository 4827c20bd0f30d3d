import { byId, make } from './dom.js'

const CHANNEL = 'demo:room'
const COPIED_MS = 1600

const { api = '', uniSse = '', uniHttpStream = '', uniPoll = '' } = document.documentElement.dataset
const { origin } = location

/** @param {string} text */
export const string = text => make('span', 'string', text)
/** @param {string} text */
const variable = text => make('span', 'variable', text)

/** @param {HTMLElement} button @param {Node} code @param {string} command */
function copyOnClick(button, code, command) {
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(command)
      button.textContent = 'Copied'
    } catch {
      // No clipboard without a secure context: select the text for the keyboard.
      getSelection()?.selectAllChildren(code)
      button.textContent = 'Selected'
    }
    setTimeout(() => {
      button.textContent = 'Copy'
    }, COPIED_MS)
  })
}

/**
 * A block of code with its name and a button that copies it.
 * @param {string} name @param {(Node | string)[]} parts @param {string} text copied
 */
export function codeBlock(name, parts, text) {
  const code = make('code', '', ...parts)
  const block = make('pre', '', code)
  block.tabIndex = 0
  const button = make('button', 'quiet', 'Copy')
  button.setAttribute('type', 'button')
  button.setAttribute('aria-label', `Copy: ${name}`)
  copyOnClick(button, code, text)
  return make('li', '', make('div', 'command-head', make('span', '', name), button), block)
}

/** The command that publishes. The key stays a variable: every visitor could read a key in the page. */
function showPublish() {
  const url = `${origin}${api}/publish`
  // White space is free in JSON, and a shell's quotes may hold a line break.
  const body = `{"channel": "${CHANNEL}",\n       "data": {"text": "Hello from a terminal"}}`
  const code = byId('curl')
  code.replaceChildren(
    `API_KEY=`,
    variable('…'),
    `\n\ncurl ${url} \\\n  -H `,
    string('"X-API-Key: '),
    variable('$API_KEY'),
    string('"'),
    ' \\\n  -d ',
    string(`'${body}'`),
  )
  copyOnClick(byId('curl-copy'), code, `curl ${url} -H "X-API-Key: $API_KEY" -d '${body}'`)
}

const REQUEST = `{"subs": {"${CHANNEL}": {}}}`

/** Ways to listen: `curl` up to its last argument, and that argument. */
const WAYS = [
  {
    name: 'Server-sent events',
    path: uniSse,
    start: `curl -NG ${origin}${uniSse}`,
    argument: ['--data-urlencode ', `'cf_connect=${REQUEST}'`],
  },
  {
    name: 'HTTP streaming',
    path: uniHttpStream,
    start: `curl -N ${origin}${uniHttpStream}`,
    argument: ['-d ', `'${REQUEST}'`],
  },
  {
    name: 'Long-poll',
    path: uniPoll,
    start: `curl -G ${origin}${uniPoll}`,
    argument: ['-d ', `'channel=${CHANNEL}&since=earliest'`],
  },
]

/** The commands that listen, one per enabled one-way transport. */
function showListen() {
  const open = WAYS.filter(({ path }) => path !== '')
  if (open.length === 0) return byId('listen').remove()
  byId('listen-commands').replaceChildren(
    ...open.map(({ name, start, argument: [flag, text] }) =>
      codeBlock(name, [`${start} \\\n  ${flag}`, string(text)], `${start} ${flag}${text}`),
    ),
  )
}

export function showCommands() {
  showPublish()
  showListen()
}
