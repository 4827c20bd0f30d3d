import { byId, make } from './dom.js'

/**
 * The line that publishes from a terminal. The key stays a variable: a page that holds an API key gives it to everybody
 * who can load the page.
 * @param {string} api where the server API is
 */
export function showCommand(api) {
  const url = `${api}/publish`
  // White space is free in JSON, and a shell's quotes may hold a line break.
  const body = '{"channel": "demo:room",\n       "data": {"text": "Hello from a terminal"}}'
  const code = byId('curl')
  code.replaceChildren(
    `API_KEY=`,
    make('span', 'variable', '…'),
    `\n\ncurl ${url} \\\n  -H `,
    make('span', 'string', '"X-API-Key: '),
    make('span', 'variable', '$API_KEY'),
    make('span', 'string', '"'),
    ' \\\n  -d ',
    make('span', 'string', `'${body}'`),
  )
  const button = byId('curl-copy')
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(`curl ${url} -H "X-API-Key: $API_KEY" -d '${body}'`)
      button.textContent = 'Copied'
    } catch {
      // No clipboard without a secure context: then the text is marked for the keyboard.
      getSelection()?.selectAllChildren(code)
      button.textContent = 'Selected'
    }
    setTimeout(() => {
      button.textContent = 'Copy'
    }, 1600)
  })
}
