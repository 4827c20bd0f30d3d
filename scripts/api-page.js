// docs/api.md, made from docs/openapi.yaml.

const HEAD = `# Server API

<!-- Made from docs/openapi.yaml by \`node scripts/docs.js\`; tests run every example on a gateway. -->

DESCRIPTION
For tools: [openapi.yaml](openapi.yaml) (OpenAPI 3.1).

\`\`\`sh
curl http://127.0.0.1:8000/api/publish -H 'X-API-Key: KEY' -d '{"channel": "news", "data": {"hello": "world"}}'
\`\`\`

- **Request:** \`POST\` to \`/api/<method>\` with one JSON object. \`/api\` is \`http_api.handler_prefix\`; with
  \`http_server.internal_port\` the API is on that port only. \`null\` counts as absent, except for \`data\`.
  Unknown fields are ignored, but an unsupported restriction is an error. Maximum body size: 16 MB.
- **Key:** \`http_api.key\`, in the header \`X-API-Key: KEY\` or \`Authorization: apikey KEY\`, or in the query as
  \`api_key\`. To replace it, see [secrets.md](secrets.md#api-key).
- **Answer:** HTTP 200 with \`{"result": ...}\` or \`{"error": {"code": ..., "message": ...}}\`. Codes and the HTTP
  statuses of refused requests: [errors.md](errors.md#errors).
- **Retry** a publish after a lost connection with the same \`idempotency_key\`: the message is published only once.
- **Connections** are kept alive and take one request at a time. For concurrent requests use several connections, or \`batch\`.

In the examples the user 42 is connected and subscribed to \`chat:lobby\`, with this configuration:

\`\`\`json
{
  "http_api": { "key": "32 random bytes" },
  "client": { "token": { "hmac_secret_key": "32 random bytes" }, "acks": { "enabled": true } },
  "channel": {
    "without_namespace": { "allow_subscribe_for_client": true },
    "namespaces": [
      {
        "name": "chat",
        "presence": true,
        "history_size": 100,
        "history_ttl": "10m",
        "force_recovery": true,
        "allow_subscribe_for_client": true
      },
      { "name": "board", "subscription_type": "map", "map": { "mode": "persistent" } }
    ]
  }
}
\`\`\`
`

const MAX_LINE = 118

/** @param {any} document @param {any} value an object, or a reference @returns {any} */
export function resolve(document, value) {
  if (value?.$ref === undefined) return value
  const found = value.$ref
    .slice('#/'.length)
    .split('/')
    .reduce((/** @type {any} */ at, /** @type {string} */ name) => at?.[name], document)
  if (found === undefined) throw new Error(`openapi.yaml: no ${value.$ref}`)
  return resolve(document, found)
}

/**
 * @typedef {object} Operation
 * @property {string} name
 * @property {any} post the operation in openapi.yaml
 * @property {any} request JSON schema
 * @property {any} answer JSON schema
 * @property {any} [example] of a request
 * @property {any} [result] of the example
 */
/** @param {any} document @returns {Operation[]} */
export function operations(document) {
  return Object.entries(document.paths).map(([path, item]) => {
    const { post } = resolve(document, item)
    const request = post.requestBody.content['application/json']
    const answer = resolve(document, post.responses['200']).content['application/json']
    return {
      name: path.slice(1),
      post,
      request: resolve(document, request.schema),
      answer: answer.schema,
      example: request.example,
      result: answer.example,
    }
  })
}

/** Each value on one line, if it fits. @param {any} value @returns {string} */
function formatJson(value, indent = '', name = '') {
  const label = name === '' ? '' : `${JSON.stringify(name)}: `
  const line = JSON.stringify(value, null, 1).replace(/\n */g, ' ').replace(/\[ /g, '[').replace(/ \]/g, ']')
  const whole = indent + label + line
  if (typeof value !== 'object' || value === null || whole.length <= MAX_LINE) return whole
  const list = Array.isArray(value)
  const members = Object.entries(value).map(([each, member]) =>
    formatJson(member, `${indent}  `, list ? '' : each),
  )
  return `${indent}${label}${list ? '[' : '{'}\n${members.join(',\n')}\n${indent}${list ? ']' : '}'}`
}

/** @param {any} schema @returns {string} */
function typeOf({ type, items, format, additionalProperties }) {
  if (type === 'array') return `list of ${items.type}s`
  if (type === 'object' && additionalProperties?.type) return `object of ${additionalProperties.type}s`
  if (format === 'base64') return 'base64'
  return type ?? 'any'
}

/**
 * Table rows of an object's fields.
 * @param {any} document @param {any} schema @param {string} [prefix]
 * @returns {string[]}
 */
function rows(document, schema, prefix = '') {
  return Object.entries(schema.properties).flatMap(([name, given]) => {
    const field = resolve(document, given)
    const required = schema.required?.includes(name) ? ', required' : ''
    const members = Object.entries(/** @type {Record<string, any>} */ (field.properties ?? {}))
    // References have no descriptions: list their names in the row of the object.
    const inOneRow = members.every(([, member]) => '$ref' in member)
    const list = inOneRow ? members.map(([member]) => `\`${member}\``).join(', ') : ''
    const names = list === '' ? '' : `: ${list}`
    return [
      `| \`${prefix}${name}\` | ${typeOf(field)}${required} | ${field.description}${names}. |`,
      ...(inOneRow ? [] : rows(document, field, `${prefix}${name}.`)),
    ]
  })
}

/** @param {any} document @param {Operation} operation */
function section(document, { name, post, request, example, result }) {
  const table = rows(document, request)
  const fields = ['', '| field | type | meaning |', '| --- | --- | --- |', ...table, ''].join('\n')
  return `
## ${name}

${post.summary}.${post.description ? `\n\n${post.description.trim()}` : ''}
${table.length === 0 ? '' : fields}
\`\`\`json
${formatJson(example)}
\`\`\`

\`\`\`json
${formatJson(result)}
\`\`\`
`
}

/** @param {any} document parsed openapi.yaml */
export function apiPage(document) {
  const all = operations(document)
  const shown = all.filter(({ post }) => !post.deprecated)
  const refused = all.filter(({ post }) => post.deprecated)
  const list = shown.map(({ name, post }) => `| [\`${name}\`](#${name}) | ${post.summary}. |`)
  return `${HEAD.replace('DESCRIPTION\n', () => document.info.description)}
| method | |
| --- | --- |
${list.join('\n')}
${shown.map(operation => section(document, operation)).join('')}
## Unsupported methods

Centrifugo has these methods. Halley answers each with an error.

${refused.map(({ name, post }) => `- \`${name}\`: ${post.summary}.`).join('\n')}

Centrifugo's legacy format, \`POST /api\` with \`{"method": "publish", "params": {...}}\`, also works.
`
}
