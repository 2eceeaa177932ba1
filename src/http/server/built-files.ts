import { readdir, readFile } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { promisify } from 'node:util'
import { brotliDecompress } from 'node:zlib'
import { readQualities } from '../../values/qualities.ts'
import type { Exchange } from '../pipeline/exchange.ts'

const contentTypes: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.json': 'application/json',
}

/** The compressed forms that a build writes beside a file or instead of it, best first. */
const encodings = [
  { name: 'br', extension: '.br' },
  { name: 'gzip', extension: '.gz' },
] as const

// The names of files below assets/ contain a hash of their content.
const forever = { 'Cache-Control': 'public, max-age=31536000, immutable' }

/** The files that a build wrote to a folder, or none if it did not run. Each file is read once, at its first use. */
export function readBuiltFiles(folder: string) {
  let names: Promise<ReadonlySet<string>> | undefined
  const listed = (): Promise<ReadonlySet<string>> => {
    names ??= readdir(folder, { recursive: true }).then(
      found => new Set(found),
      () => new Set(),
    )
    return names
  }
  const load = async (name: string) =>
    (await listed()).has(name)
      ? readFile(join(folder, name))
      : promisify(brotliDecompress)(await readFile(join(folder, `${name}.br`)))
  const contents = new Map<string, Promise<Buffer>>()
  const read = (name: string) => {
    const reading = contents.get(name) ?? load(name)
    contents.set(name, reading)
    return reading
  }
  return {
    read,
    /** Whether the build wrote the file. Only such names are read, so no URL leads out of the folder. */
    async has(name: string): Promise<boolean> {
      const known = await listed()
      return contentTypes[extname(name)] !== undefined && (known.has(name) || known.has(`${name}.br`))
    },
    /** Sends a file of the build. It is compressed if the client accepts that. */
    async send(exchange: Exchange, name: string, status = 200): Promise<void> {
      const known = await listed()
      const accepted = readQualities(String(exchange.request.headers['accept-encoding'] ?? ''))
      const encoding = encodings.find(
        ({ name: coding, extension }) =>
          known.has(name + extension) && accepted.some(({ name, quality }) => name === coding && quality > 0),
      )
      if (name.startsWith('assets/')) exchange.headers(forever)
      exchange.varyBy('Accept-Encoding')
      if (encoding) exchange.header('Content-Encoding', encoding.name)
      exchange.send(status, await read(name + (encoding?.extension ?? '')), contentTypes[extname(name)]!)
    },
  }
}
