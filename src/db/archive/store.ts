import { createHash, randomBytes } from 'node:crypto'
import { mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { AwsClient } from 'aws4fetch'
import type { ArchiveAddress } from '../../process/archive-address.ts'
import { syncFolder } from '../../process/sync-folder.ts'
import { orMissing } from '../missing-files.ts'

/** Named objects of bytes. An object is written as a whole or not at all, and is durable when `write` resolves. */
export type Store = {
  /** The address for messages, without credentials. */
  label: string
  /** The bytes of an object. Undefined if it does not exist. */
  read(name: string): Promise<Buffer | undefined>
  write(name: string, bytes: Buffer): Promise<void>
  /**
   * The names below a folder, which ends with a slash, in order. Names of files that kith does not write are left out.
   */
  list(folder: string): Promise<string[]>
  remove(name: string): Promise<void>
}

/**
 * The archive cannot be used until an operator changes the credentials, a folder or a setting. Waiting does not help.
 */
export class ArchiveRefusal extends Error {}

const namePattern = /^[\w-][\w.-]*(\/[\w-][\w.-]*)*$/
const requestPatienceMs = 60_000

export const openStore = (address: ArchiveAddress): Store =>
  'folder' in address ? openFolder(address.folder) : openBucket(address)

function openFolder(folder: string): Store {
  /**
   * The folder itself is not created: if its disk is unmounted, a new folder would be an empty archive on the disk of
   * the data.
   */
  async function requireFolder() {
    if (!(await orMissing(stat(folder)))?.isDirectory())
      throw new ArchiveRefusal(`the folder ${folder} does not exist: make it, or mount its disk`)
  }
  return {
    label: folder,
    async read(name) {
      await requireFolder()
      return orMissing(readFile(join(folder, name)))
    },
    async write(name, bytes) {
      await requireFolder()
      const path = join(folder, name)
      await makeFolders(folder, dirname(name))
      const partial = join(dirname(path), `.${randomBytes(6).toString('hex')}.partial`)
      try {
        const file = await open(partial, 'wx', 0o600)
        await (async () => {
          await file.writeFile(bytes)
          await file.sync()
        })().finally(() => file.close())
        await rename(partial, path)
        await syncFolder(dirname(path))
      } catch (error) {
        // The system's message names the partial file, whose name differs each time.
        throw new Error(`${path} cannot be written (${(error as NodeJS.ErrnoException).code})`, { cause: error })
      } finally {
        await rm(partial, { force: true })
      }
    },
    async list(below) {
      await requireFolder()
      const reading = readdir(join(folder, below), { recursive: true, withFileTypes: true })
      return ((await orMissing(reading)) ?? [])
        .filter(entry => entry.isFile())
        .map(entry => join(entry.parentPath, entry.name).slice(join(folder, '/').length))
        .filter(name => namePattern.test(name))
        .toSorted()
    },
    remove: name => rm(join(folder, name), { force: true }),
  }
}

async function makeFolders(folder: string, name: string) {
  if (name === '.') return
  const parent = dirname(name)
  await makeFolders(folder, parent)
  await mkdir(join(folder, name), { mode: 0o700 }).then(
    () => syncFolder(join(folder, parent)),
    error => {
      if (error.code !== 'EEXIST') throw error
    },
  )
}

function openBucket(address: Exclude<ArchiveAddress, { folder: string }>): Store {
  const { bucket, prefix, endpoint, region, credentials } = address
  const client = new AwsClient({ ...credentials, service: 's3', region, retries: 3 })
  const label = `s3://${bucket}/${prefix}`
  const base = `${endpoint}/${bucket}`

  async function send(method: string, url: string, body?: Buffer): Promise<Response> {
    // With the checksum, the store can reject bytes that changed in transit.
    const checksum = createHash('sha256')
      .update(body ?? '')
      .digest('hex')
    const response = await client
      .fetch(url, {
        method,
        headers: { 'X-Amz-Content-Sha256': checksum },
        signal: AbortSignal.timeout(requestPatienceMs),
        ...(body && { body: new Uint8Array(body) }),
      })
      .catch(cause => {
        throw new Error(`the store at ${endpoint} does not respond (${reasonOf(cause)})`, { cause })
      })
    if (response.ok) return response
    const text = await response.text()
    if (response.status === 404 && method === 'GET' && text.includes('NoSuchKey')) return response
    const refusals: Record<number, string> = {
      401: `the store refuses the credentials for ${label}: check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY`,
      403: `the store refuses the credentials for ${label}: check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and the rights of the key`,
      404: `the bucket ${bucket} does not exist at ${endpoint}`,
    }
    const refusal = refusals[response.status]
    if (refusal !== undefined) throw new ArchiveRefusal(refusal)
    throw new Error(`the store at ${endpoint} responds with ${response.status} to ${method} in ${label}`)
  }

  async function listPage(folder: string, after: string): Promise<{ names: string[]; last: string | undefined }> {
    const query = new URLSearchParams({ 'list-type': '2', prefix: prefix + folder, 'start-after': after })
    const response = await send('GET', `${base}?${query}`)
    const text = await response.text()
    const names = [...text.matchAll(/<Key>([^<]*)<\/Key>/g)].map(([, key]) => unescapeXml(key!))
    const isTruncated = text.includes('<IsTruncated>true</IsTruncated>')
    return { names, last: isTruncated ? names.at(-1) : undefined }
  }

  return {
    label,
    async read(name) {
      const response = await send('GET', `${base}/${prefix}${name}`)
      return response.status === 404 ? undefined : Buffer.from(await response.arrayBuffer())
    },
    async write(name, bytes) {
      await send('PUT', `${base}/${prefix}${name}`, bytes)
    },
    async list(folder) {
      const names: string[] = []
      let after: string | undefined = ''
      while (after !== undefined) {
        const page = await listPage(folder, after)
        names.push(...page.names)
        after = page.last
      }
      return names
        .filter(name => name.startsWith(prefix + folder))
        .map(name => name.slice(prefix.length))
        .filter(name => namePattern.test(name))
        .toSorted()
    },
    async remove(name) {
      await send('DELETE', `${base}/${prefix}${name}`)
    },
  }
}

const reasonOf = (error: Error) => (error.cause as NodeJS.ErrnoException | undefined)?.code ?? error.message

const entities: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

const unescapeXml = (text: string) =>
  text.replace(/&(?:#x([\da-f]+)|#(\d+)|(\w+));/gi, (whole, hex, decimal, name) => {
    if (name !== undefined) return entities[name] ?? whole
    const code = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16)
    return code <= 0x10ffff ? String.fromCodePoint(code) : whole
  })
