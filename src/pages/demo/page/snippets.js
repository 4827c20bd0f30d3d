// Code for a page of one's own, with the addresses of this gateway.

import { byId } from './dom.js'
import { codeBlock, string } from './terminal.js'

const CHANNEL = 'demo:room'
const { websocket = '' } = document.documentElement.dataset
const { host, origin, protocol } = location
const address = `${protocol === 'https:' ? 'wss' : 'ws'}://${host}${websocket}`

/** Lines that fit beside each other. @param {string} show what happens to a message */
const subscriber = show => `const url = '${address}'
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

/** Marks the strings. @param {string} code @returns {(Node | string)[]} */
const marked = code =>
  code.split(/('[^'\n]*'|"[^"\n]*")/).map((part, at) => (at % 2 === 1 ? string(part) : part))

/** Two ways to the SDK: a script, and the package from npm. */
export function showSnippets() {
  if (websocket === '') return byId('own').remove()
  byId('own-commands').replaceChildren(
    codeBlock('A file: page.html', marked(SCRIPT), SCRIPT),
    codeBlock('A project: the package from npm', marked(MODULE), MODULE),
  )
}
