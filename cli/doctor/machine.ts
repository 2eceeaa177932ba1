import { X509Certificate } from 'node:crypto'
import { lstat, stat, statfs } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { fetchOutsideKeys } from '../../src/auth/outside-keys.ts'
import type { Config } from '../../src/config.ts'
import { readTls } from '../../src/http/tls.ts'
import { attempt, type Finding, ok, warning, wrong } from './finding.ts'

const day_ms = 86_400_000
const certificate_days = 30
const enough_bytes = 2 ** 30
const least_bytes = 2 ** 28

/** The folder of the embedded PostgreSQL: who may look into it, and how much room there is. */
export async function checkDataFolder({ data_dir, database_url }: Config): Promise<Finding[]> {
  if (database_url !== undefined) return []
  const folder = resolve(data_dir)
  const known = await stat(folder).catch(() => undefined)
  if (!known)
    return [
      warning('data folder', `${folder} is not there yet`, 'Nothing, before the first start; else see KITH_DATA_DIR.'),
      ...(await checkRoom(dirname(folder))),
    ]
  return [...(await checkPermissions(folder)), ...(await checkRoom(folder))]
}

const group_or_others = 0o077
const writers = 0o022

async function checkPermissions(folder: string): Promise<Finding[]> {
  const found: Finding[] = []
  const forbid = async (path: string, bits: number, what: string, mode: string) => {
    const file = await lstat(path).catch(() => undefined)
    if (file && file.mode & bits)
      found.push(wrong('permissions', `${path} may be ${what} by other users`, `chmod ${mode} ${path}`))
  }
  await forbid(folder, writers, 'changed', 'go-w')
  await forbid(join(folder, 'postgresql', 'password'), group_or_others, 'read', '600')
  await forbid(join(folder, 'postgresql', 'data'), group_or_others, 'entered', '700')
  return found.length > 0 ? found : [ok('permissions', `${folder} is closed to other users`)]
}

const gigabytes = (bytes: number) => `${(bytes / 2 ** 30).toFixed(1)} GiB`

async function checkRoom(folder: string): Promise<Finding[]> {
  return attempt('disk', 'See KITH_DATA_DIR.', async () => {
    const { bavail, bsize } = await statfs(folder)
    const free = bavail * bsize
    const message = `${gigabytes(free)} are free where ${folder} lies`
    const advice = 'Make room: PostgreSQL stops writing when there is none.'
    if (free < least_bytes) return [wrong('disk', message, advice)]
    return [free < enough_bytes ? warning('disk', message, advice) : ok('disk', message)]
  })
}

/** Certificate and key: one pair, good today and for a while. */
export function checkTls({ tls }: Config): Promise<Finding[]> {
  return attempt('tls', 'Mend the files that TLS_CERT_FILE and TLS_KEY_FILE name.', async () => {
    if (!tls) return []
    const { cert } = readTls(tls)
    const { validFromDate, validToDate } = new X509Certificate(cert)
    const until = validToDate.toISOString().slice(0, 10)
    const renew = `Renew ${tls.cert_file}, then send the service SIGHUP.`
    const found: Finding[] = []
    if (validToDate.getTime() < Date.now()) found.push(wrong('tls', `the certificate expired on ${until}`, renew))
    else if (validFromDate.getTime() > Date.now())
      found.push(wrong('tls', 'the certificate is not valid yet', 'See the clock of this machine.'))
    else if (validToDate.getTime() < Date.now() + certificate_days * day_ms)
      found.push(warning('tls', `the certificate expires on ${until}`, renew))
    else found.push(ok('tls', `certificate and key are a pair, good until ${until}`))
    if ((await stat(tls.key_file)).mode & 0o007)
      found.push(warning('tls', `${tls.key_file} is open to every user`, `chmod o-rwx ${tls.key_file}`))
    return found
  })
}

/** Whether the outside issuer's keys can be had, and used. */
export function checkIssuer({ outside_issuer }: Config): Promise<Finding[]> {
  return attempt('issuer', 'See AUTH_JWKS_URL, and whether this machine reaches it.', async () => {
    if (!outside_issuer) return []
    const keys = await fetchOutsideKeys(outside_issuer.jwks_url)
    if (keys.size > 0) return [ok('issuer', `${outside_issuer.issuer} has ${keys.size} keys that can be used`)]
    const advice = 'The set needs a key with a kid, for ES256, RS256 or EdDSA.'
    return [wrong('issuer', `none of the keys of ${outside_issuer.issuer} can be used`, advice)]
  })
}
