import pg from 'pg'

const oldestSupported = 15
const connectTimeoutMs = 10_000

/**
 * Connects once, so that a start with a wrong DATABASE_URL ends with one readable sentence, without the password.
 * Throws an Error for a server that does not answer, refuses the login, lacks the database or is older than PostgreSQL 15.
 */
export async function probe(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: connectTimeoutMs })
  client.on('error', () => {})
  try {
    await client.connect()
    const { rows } = await client.query<{ server_version_num: string }>('show server_version_num')
    const problem = versionProblem(Number(rows[0]?.server_version_num))
    if (problem) throw new Error(problem)
  } catch (error) {
    throw new Error(withoutPassword(sentence(error as ConnectionError, client), client), { cause: error })
  } finally {
    await client.end().catch(() => {})
  }
}

/** Why a server is too old; undefined when it is not. `version` as `server_version_num` has it: 150018 is 15.18. */
export function versionProblem(version: number): string | undefined {
  const major = Math.floor(version / 10_000)
  if (major >= oldestSupported) return undefined
  return `The server of DATABASE_URL is PostgreSQL ${major}; kith needs ${oldestSupported} or newer.`
}

type ConnectionError = Error & { code?: string }

const unreachableCodes = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EACCES',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOENT',
  'ENOTFOUND',
  'ETIMEDOUT',
])

/** What went wrong, by the codes of the system and of PostgreSQL (https://www.postgresql.org/docs/current/errcodes-appendix.html). */
function sentence({ code = '', message }: ConnectionError, { host, port, user, database }: pg.Client): string {
  const server = host.startsWith('/') ? `${host}/.s.PGSQL.${port}` : `${host}:${port}`
  if (unreachableCodes.has(code)) return `No PostgreSQL answers at ${server} (${code}): see DATABASE_URL.`
  if (/^timeout expired|timeout exceeded/.test(message))
    return `No PostgreSQL answers at ${server} within ${connectTimeoutMs / 1_000} s: see DATABASE_URL.`
  if (code.startsWith('28') || message.startsWith('SASL'))
    return `The PostgreSQL at ${server} refuses the login of "${user}" (${message}): see DATABASE_URL.`
  if (code === '3D000')
    return `The PostgreSQL at ${server} has no database "${database}": create it, or see DATABASE_URL.`
  if (message.startsWith('The server of DATABASE_URL')) return message
  return `The PostgreSQL at ${server} cannot be used (${message}): see DATABASE_URL.`
}

function withoutPassword(text: string, { password }: pg.Client): string {
  return password ? text.replaceAll(password, '…') : text
}
