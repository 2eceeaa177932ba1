// Keeps what a release stores, for the tests of later versions: a data folder and a backup of the sample shop, what the release exports, and
// its program.
//   node test/upgrades/make-release.ts
// It writes the folder test/upgrades/<version> and is run once, when a version is released. A stored release is never made anew.

import { execFileSync } from 'node:child_process'
import { copyFileSync, globSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { constants, gzipSync, zstdCompressSync } from 'node:zlib'
import { createClient } from '../../client/index.ts'
import { version } from '../../src/process/version.ts'
import { endProcesses, launch, makeFolder, terminate, tokenFrom } from '../support/process.ts'
import { readAll } from './read-all.ts'

const target = join(import.meta.dirname, version)
const folder = await makeFolder()
const environment = { KITH_DATA_DIR: join(folder, '.kith'), PATH: process.env.PATH!, HOME: folder }
const kith = launch(environment)
const url = await kith.ready
const token = await tokenFrom(environment)
const command = (...words: string[]) =>
  String(
    execFileSync(process.execPath, ['cli/main.ts', ...words], {
      env: { ...environment, KITH_URL: url, KITH_TOKEN: token },
    }),
  )

command('seed', '--people', '40')
const client = createClient({ url, token })
const [first, second, third, fourth] = (await client.people.list({ size: 4 }).page()).items.map(
  ({ external_id }) => external_id!,
)
await client.people.merge(first!, { from: second! })
await client.people.erase(third!, { reason: 'asked by letter', records: 'keep' })
await client.people.delete(fourth!)
await client.webhooks.create({ url: 'https://receiver.example/kith', events: ['person.*'], active: false })
await client.segments.create({ key: 'rome', filter: { 'attribute_values.city': 'Rome' } })

mkdirSync(target, { recursive: true })
const checkpoint = command('ledger', 'checkpoint', '--org', 'default')
writeFileSync(join(target, 'expected.json.gz'), gzipSync(JSON.stringify({ checkpoint, ...(await readAll(client)) })))
execFileSync(process.execPath, ['cli/main.ts', 'backup', join(target, 'kith.backup')], { env: environment })
await terminate(kith)
copyFileSync(join(folder, '.kith', 'master.key'), join(target, 'master.key'))

/** Writes an archive of paths of a folder to the folder of the release. */
function keep(name: string, from: string, paths: string[]) {
  const tar = execFileSync('tar', ['--create', '--directory', from, ...paths], { maxBuffer: 2 ** 30 })
  const params = { [constants.ZSTD_c_compressionLevel]: 19, [constants.ZSTD_c_windowLog]: 26 }
  writeFileSync(join(target, name), zstdCompressSync(tar, { params }))
}
keep('data.tar.zst', folder, ['.kith'])
// The archive has only the files of the package that `serve` needs. With a database of its own, it needs no other
// package.
execFileSync(process.execPath, ['scripts/pack.ts', folder], { stdio: 'inherit' })
execFileSync('tar', ['--extract', '--file', globSync(join(folder, 'kith-[0-9]*.tgz'))[0]!, '--directory', folder])
const unneeded = ['*.map', 'package/console', 'package/docs', 'swagger-ui*.js', 'swagger-ui.css']
keep('program.tar.zst', folder, [...unneeded.map(pattern => `--exclude=${pattern}`), 'package'])
await endProcesses()
