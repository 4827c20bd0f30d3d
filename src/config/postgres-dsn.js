// Connection strings of PostgreSQL, as libpq and pgx read them: a URL, or `key=value` pairs.
// https://www.postgresql.org/docs/15/libpq-connect.html#LIBPQ-CONNSTRING

/**
 * @typedef {object} Dsn
 * @property {Record<string, any>} client options of a client of `pg`, without TLS
 * @property {string} sslmode `disable`, `allow`, `prefer`, `require`, `verify-ca` or `verify-full`
 * @property {{ca: string, cert: string, key: string}} files paths of PEM files for TLS; '': not given
 * @property {Record<string, string>} settings of the session
 * @property {number} poolMax maximum connections; 0: not given
 */

const SSL_MODES = Object.freeze(['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full'])
/** Parameters of libpq and pgx without an effect here. */
const IGNORED =
  /^(pool_.*|sslcompression|gssencmode|channel_binding|keepalives.*|tcp_user_timeout|krbsrvname|default_query_exec_mode|(statement|description)_cache_.*|target_session_attrs|passfile|client_encoding|fallback_application_name|min_read_buffer_size)$/
const WHOLE = /^\d{1,9}$/
/** `key = value` or `key = 'value'`, with backslashes before quotes and backslashes. */
const PAIR = /\s*([a-z_][a-z0-9_.]*)\s*=\s*(?:'((?:[^'\\]|\\.)*)'|((?:[^\s'\\]|\\.)*))(?=\s|$)\s*/iy

/** @param {string} text */
const unescaped = text => text.replaceAll(/\\(.)/gs, '$1')

/** @param {string} dsn @returns {Record<string, string>} */
function readPairs(dsn) {
  /** @type {Record<string, string>} */
  const words = {}
  PAIR.lastIndex = 0
  while (PAIR.lastIndex < dsn.length) {
    const found = PAIR.exec(dsn)
    if (found === null) throw new Error('is neither a postgres:// URL nor pairs like host=... dbname=...')
    words[found[1]] = unescaped(found[2] ?? found[3])
  }
  return words
}

/** @param {string} dsn @returns {Record<string, string>} */
function readUrl(dsn) {
  // The host may be in the query instead. URL needs one: `-` stands for it.
  const text = dsn.replace(/^(\w+:\/\/(?:[^/?#]*@)?)(?=[/?]|$)/, '$1-')
  const [, hosts = ''] = /^\w+:\/\/(?:[^/?#]*@)?([^/?#]*)/.exec(text) ?? []
  if (hosts.includes(',')) throw new Error('names several hosts; name one, or a proxy before them')
  if (!URL.canParse(text)) throw new Error('is not a postgres:// URL; encode other characters as %XX')
  const url = new URL(text)
  try {
    const port = url.port
    return {
      ...(url.hostname === '-' ? {} : { host: decodeURIComponent(url.hostname.replaceAll(/^\[|\]$/g, '')) }),
      ...(port === '' ? {} : { port }),
      ...(url.username === '' ? {} : { user: decodeURIComponent(url.username) }),
      ...(url.password === '' ? {} : { password: decodeURIComponent(url.password) }),
      ...(url.pathname.length < 2 ? {} : { dbname: decodeURIComponent(url.pathname.slice(1)) }),
      ...Object.fromEntries(url.searchParams),
    }
  } catch {
    throw new Error('has a % that does not begin an encoded character')
  }
}

/** @param {Record<string, string>} words @param {string} name @param {number} most */
function number(words, name, most) {
  const text = words[name] ?? ''
  if (text === '') return 0
  if (!WHOLE.test(text) || Number(text) > most)
    throw new Error(`has a ${name} that is not within 0 and ${most}`)
  return Number(text)
}

/**
 * @param {string} dsn
 * @returns {Dsn}
 * @throws {Error} whose message follows the name of the option, without the DSN: it may hold a password
 */
export function parseDsn(dsn) {
  if (dsn.trim() === '') throw new Error('is empty')
  const words = /^postgres(ql)?:\/\//i.test(dsn) ? readUrl(dsn) : readPairs(dsn)
  const { host, hostaddr, user, password, dbname, database, application_name, options, ...others } = words
  const { sslmode = 'prefer', sslrootcert = '', sslcert = '', sslkey = '' } = words
  if ((host ?? '').includes(',')) throw new Error('names several hosts; name one, or a proxy before them')
  if (!SSL_MODES.includes(sslmode))
    throw new Error(`has an unknown sslmode; known are ${SSL_MODES.join(', ')}`)
  const port = number(words, 'port', 65535)
  const timeout = number(words, 'connect_timeout', 3600)
  const poolMax = number(words, 'pool_max_conns', 10_000)
  /** @type {Record<string, string>} */
  const settings = {}
  const own = ['port', 'connect_timeout', 'sslmode', 'sslrootcert', 'sslcert', 'sslkey']
  for (const [name, value] of Object.entries(others))
    if (!own.includes(name) && !IGNORED.test(name)) settings[name] = value
  const server = hostaddr || host
  const name = dbname || database
  return {
    client: {
      ...(server && { host: server }),
      ...(port > 0 && { port }),
      ...(user && { user }),
      ...(password && { password }),
      ...(name && { database: name }),
      ...(options && { options }),
      ...(timeout > 0 && { connectionTimeoutMillis: timeout * 1000 }),
      application_name: application_name || 'halley',
    },
    // No TLS over Unix sockets.
    sslmode: server?.startsWith('/') ? 'disable' : sslmode,
    files: { ca: sslrootcert, cert: sslcert, key: sslkey },
    settings,
    poolMax,
  }
}
