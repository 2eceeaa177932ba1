import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { runInProcess, useFolder } from '../support/command.ts'
import { createTestDatabase } from '../support/database.ts'
import { startService, useOwnService } from '../support/service.ts'
import { blocksOf } from './manual.ts'

const service = useOwnService()
const folder = useFolder()

/** Runs a command on a database. Returns its standard output. */
async function kith(databaseUrl: string, ...words: string[]): Promise<string> {
  const { code, stdout, stderr } = await runInProcess(words, { DATABASE_URL: databaseUrl })
  if (code !== 0) throw new Error(stderr)
  return stdout
}

/** The words of the command that the manual gives for the time after a restore, with another file. */
function commandOfManual(file: string): string[] {
  const [line] = blocksOf('After a restore', '').map(block => block.trim())
  expect(line).toBe('kith erasures apply --org default certificates.txt --yes')
  return line!
    .split(' ')
    .slice(1)
    .map(word => (word === 'certificates.txt' ? file : word))
}

it('the restore drill of the manual erases again whom an older backup brings back, and a newer one keeps the tombstones', {
  timeout: 120_000,
}, async () => {
  const url = service.databaseUrl
  const send = service.sender(await service.tokenFor('default'))
  const ada = { external_id: 'ada', email: 'ada@example.com' }
  const { id } = (await send('POST', '/v1/people', ada)).body.data
  await send('POST', '/v1/people', { external_id: 'bob', email: 'bob@example.com' })
  const [older, newer, certificates] = ['older', 'newer', 'certificates.txt'].map(name => join(folder, name)) as [
    string,
    string,
    string,
  ]
  await kith(url, 'backup', older)
  expect((await send('POST', '/v1/people/ada/erase', { reason: 'Request of the person' })).status).toBe(200)
  await kith(url, 'backup', newer)
  await writeFile(certificates, await kith(url, 'erasures', 'list', '--org', 'default'))

  for (const [backup, isBack] of [
    [older, true],
    [newer, false],
  ] as const) {
    const database = await createTestDatabase({ tables: false })
    try {
      await kith(database.url, 'restore', backup)
      const applied = (await kith(database.url, ...commandOfManual(certificates))).split('\n').filter(Boolean)
      expect(applied).toHaveLength(isBack ? 1 : 0)
      expect(await kith(database.url, ...commandOfManual(certificates))).toBe('')
      const restored = await startService({}, database.url)
      try {
        const again = restored.sender(await restored.tokenFor('default'))
        expect((await again('GET', `/v1/people/internal/${id}`)).status).toBe(404)
        expect((await again('GET', '/v1/people/bob')).body.data.email).toBe('bob@example.com')
        const refused = await again('POST', '/v1/people', { email: 'ADA@example.com' })
        expect([refused.status, refused.body.reason]).toEqual([409, 'erased'])
        expect((await again('POST', '/v1/people', { external_id: 'ada' })).body.reason).toBe('erased')
      } finally {
        await restored.stop()
      }
    } finally {
      await database.drop()
    }
  }
})
