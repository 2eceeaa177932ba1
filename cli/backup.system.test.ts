import { copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { underWriters, useBackupFixture, writePerson } from '../test/support/backups.ts'
import { launch, makeDataFolder, makeFolder, senderTo, terminate, tokenFrom } from '../test/support/process.ts'

const { newFile, start } = useBackupFixture()

it('a backup of the embedded server works while the service runs and while it is stopped, and restores into another data folder', {
  timeout: 120_000,
}, async () => {
  const first = { KITH_DATA_DIR: await makeDataFolder() }
  const second = { KITH_DATA_DIR: join(await makeFolder(), '.kith') }
  const service = launch(first)
  const address = await service.ready
  const token = await tokenFrom(first)
  const send = senderTo(address, token)
  for (const body of [
    { key: 'referrer', owner: 'people', type: 'person' },
    { key: 'bought', owner: 'people', type: 'person', cardinality: 'many' },
  ])
    expect((await send('POST', '/v1/schema/attributes', body)).status).toBe(201)
  const [online, offline] = [newFile(), newFile()]
  expect(await underWriters(send, () => start(['backup', online], first).ended)).toMatchObject({ code: 0 })
  expect(await terminate(service)).toBe(0)

  expect(await start(['restore', online], second).ended).toMatchObject({
    code: 0,
    stderr: expect.stringContaining(`Put it into ${join(second.KITH_DATA_DIR, 'master.key')} before the start`),
  })
  await copyFile(join(first.KITH_DATA_DIR, 'master.key'), join(second.KITH_DATA_DIR, 'master.key'))
  const restored = launch(second)
  const sendThere = senderTo(await restored.ready, token)
  const { body } = await sendThere('GET', '/v1/people/writer_a')
  expect(body.data.version).toBeGreaterThan(5)
  const { version } = body.data
  await writePerson(sendThere, 'writer_a', 3)
  expect((await sendThere('GET', '/v1/people/writer_a')).body.data.version).toBe(version + 1)
  expect(await terminate(restored)).toBe(0)
  const backup = await start(['backup', offline, '--json'], second).ended
  expect(JSON.parse(backup.stdout).rows).toBeGreaterThan(20)
})
