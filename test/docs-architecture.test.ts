import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { root } from '../scripts/source.ts'

const document = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8')
/** The files and folders that the document names. */
const paths = [...document.matchAll(/`([\w./-]+(?:\.ts|\/))`/g)].map(([, path]) => path!)

describe('ARCHITECTURE.md', () => {
  it('names only files and folders that exist', () => {
    const roles = ['routes.ts', 'schema.ts', 'sql.ts']
    const folders = ['src', '.', 'src/entities/write', 'src/filters']
    const missing = paths.filter(
      path => !roles.includes(path) && !folders.some(folder => existsSync(join(root, folder, path))),
    )
    expect(missing).toEqual([])
  })

  it('has every folder of src on its map', () => {
    const rooms = readdirSync(join(root, 'src'), { withFileTypes: true }).filter(entry => entry.isDirectory())
    expect(rooms.map(({ name }) => `${name}/`).filter(room => !paths.includes(room))).toEqual([])
  })

  it('has at most 10 kB', () => {
    expect(Buffer.byteLength(document)).toBeLessThanOrEqual(10_000)
  })
})
