import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, describe, expect, it } from 'vitest'
import { query } from '../support/embedded-service.ts'
import { endProcesses, launch, makeDataFolder, makeFolder, senderTo, terminate, tokenFrom } from '../support/process.ts'
import { blocksOf } from './manual.ts'

afterEach(endProcesses)

const [copy, dump] = blocksOf('The embedded database', 'sh')

// The timeout allows for two starts of a server on a machine that runs other tests.
describe('the embedded database', { timeout: 60_000 }, () => {
  it('starts from a copy of its folder that the manual makes while the service is stopped', async () => {
    const [KITH_DATA_DIR, BACKUPS] = [await makeDataFolder(), await makeFolder()]
    const first = launch({ KITH_DATA_DIR })
    const address = await first.ready
    const token = await tokenFrom({ KITH_DATA_DIR })
    expect((await senderTo(address, token)('POST', '/v1/people', { external_id: 'ada' })).status).toBe(201)
    expect(await terminate(first)).toBe(0)
    await promisify(execFile)('sh', ['-euc', copy!], { env: { PATH: '/usr/bin:/bin', KITH_DATA_DIR, BACKUPS } })

    const second = launch({ KITH_DATA_DIR: join(BACKUPS, 'kith-data') })
    const { status } = await senderTo(await second.ready, token)('GET', '/v1/people/ada')
    expect(status).toBe(200)
    expect(await terminate(second)).toBe(0)
  })

  it('accepts a client program with the password and socket files that the manual names', async () => {
    const KITH_DATA_DIR = await makeDataFolder()
    const kith = launch({ KITH_DATA_DIR })
    await kith.ready
    const [passwordFile, socketFile] = [...dump!.matchAll(/\$KITH_DATA_DIR(\/[\w/]+)/g)].map(match => match[1]!)
    const read = async (path: string) => (await readFile(join(KITH_DATA_DIR, path), 'utf8')).trim()
    const host = encodeURIComponent(await read(socketFile!))
    const url = `postgresql://kith:${await read(passwordFile!)}@localhost/kith?host=${host}`
    expect(await query(url, 'select key from organizations')).toEqual([{ key: 'default' }])
    expect(await terminate(kith)).toBe(0)
  })
})
