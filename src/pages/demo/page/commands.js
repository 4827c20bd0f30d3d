// Using the gateway without this page: code and commands with its addresses, and a plain EventSource.

import { plural } from '../../../base/format.js'
import { byId, make, smallButton } from '../../web/dom.js'

const CHANNEL = 'demo:room'
const COPIED_MS = 1600
const {
  websocket = '',
  api = '',
  uniSse = '',
  uniHttpStream = '',
  uniPoll = '',
} = document.documentElement.dataset
const { host, origin, protocol } = location

/** Shared by both examples. @param {string} show code for a message */
const subscriber = show => `const url = '${protocol === 'https:' ? 'wss' : 'ws'}://${host}${websocket}'
const client = new Centrifuge(url)
const room = client.newSubscription('${CHANNEL}')
room.on('publication', ({ data }) => ${show})
room.subscribe()
client.connect()`

const SCRIPT = `<!doctype html>
<meta charset="utf-8">
<script src="${origin}/demo/centrifuge.js"></script>
<ol id="list"></ol>
<script>
${subscriber('show(data.text)')}

function show(text) {
  const line = document.createElement('li')
  line.textContent = text
  document.getElementById('list').append(line)
}
</script>`

const MODULE = `// npm install centrifuge
import { Centrifuge } from 'centrifuge'

${subscriber('console.log(data.text)')}

// any subscriber may publish to this channel
await room.publish({ text: 'Hello from my page' })`

/** The key is a variable: every visitor could read a key in the page. */
const PUBLISH = `curl ${origin}${api}/publish \\
  -H "X-API-Key: $API_KEY" \\
  -d '{"channel": "${CHANNEL}",
       "data": {"text": "Hello from a terminal"}}'`

const REQUEST = `{"subs": {"${CHANNEL}": {}}}`
/** Listening commands, one per enabled one-way transport: name, path, options, last argument. */
const LISTEN = [
  ['Server-sent events', uniSse, '-NG', `--data-urlencode 'cf_connect=${REQUEST}'`],
  ['HTTP streaming', uniHttpStream, '-N', `-d '${REQUEST}'`],
  ['Long-poll', uniPoll, '-G', `-d 'channel=${CHANNEL}&since=earliest'`],
].filter(([, path]) => path !== '')

/** Code with a copy button. @param {string} name @param {string} text @param {string} [before] not copied */
function codeBlock(name, text, before = '') {
  // Strings and placeholders have their own colours.
  const parts = `${before}${text}`
    .split(/('[^']*'|"[^"\n]*"|…)/)
    .map((part, at) => (at % 2 === 1 ? make('span', part === '…' ? 'variable' : 'string', part) : part))
  const code = make('code', '', ...parts)
  const block = make('pre', '', code)
  block.tabIndex = 0
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text)
      button.textContent = 'Copied'
    } catch {
      // No clipboard without a secure context: select the text for the keyboard.
      getSelection()?.selectAllChildren(code)
      button.textContent = 'Selected'
    }
    setTimeout(() => {
      button.textContent = 'Copy'
    }, COPIED_MS)
  }
  const button = smallButton('Copy', `Copy: ${name}`, copy, 'quiet')
  return make('li', '', make('div', 'command-head', make('span', '', name), button), block)
}

/** The user opens the EventSource: over HTTP/1.1 a browser has six connections per host. */
function offerEventSource() {
  const button = byId('listen-toggle')
  const subs = { [CHANNEL]: {}, 'demo:vitals': {} }
  const url = `${uniSse}?cf_connect=${encodeURIComponent(JSON.stringify({ subs }))}`
  /** @type {EventSource | undefined} */
  let source
  /** @param {'connecting' | 'connected' | ''} state @param {string} text */
  const show = (state, text) => {
    byId('listener').dataset.state = state
    byId('listen-text').textContent = text
    button.textContent = source ? 'Close it' : 'Open an EventSource'
  }
  const close = (text = 'Closed.') => {
    source?.close()
    source = undefined
    show('', text)
  }
  button.addEventListener('click', () => {
    if (source) return close()
    let events = 0
    const opened = new EventSource(url)
    source = opened
    show('connecting', 'Connecting.')
    opened.onmessage = ({ data }) => {
      // A ping is an empty object.
      const { channel, pub } = JSON.parse(data)
      const last = channel && pub ? ` · ${channel}${pub.offset ? ` at ${pub.offset}` : ''}` : ''
      show('connected', `${plural(++events, 'event')}${last}`)
    }
    opened.onerror = () => {
      if (opened.readyState === EventSource.CLOSED) close('The gateway refused the connection.')
      else show('connecting', 'Connection lost; the browser reconnects after the last event.')
    }
  })
}

export function showCommands() {
  byId('publish-command').replaceChildren(codeBlock('The API key, and a request', PUBLISH, 'API_KEY=…\n\n'))
  if (websocket === '') byId('own').remove()
  else {
    byId('own-commands').replaceChildren(
      codeBlock('A file: page.html', SCRIPT),
      codeBlock('A project: the package from npm', MODULE),
    )
  }
  if (LISTEN.length === 0) return byId('listen').remove()
  byId('listen-commands').replaceChildren(
    ...LISTEN.map(([name, path, options, argument]) =>
      codeBlock(name, `curl ${options} ${origin}${path} \\\n  ${argument}`),
    ),
  )
  if (uniSse === '') byId('listener').remove()
  else offerEventSource()
}
