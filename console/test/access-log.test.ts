import { expect, it } from 'vitest'
import { useConsole } from '../../test/support/console.ts'

const { service, open, openPerson } = useConsole({ KITH_ACCESS_LOG: 'strict' })

it('an officer sees who has opened a person, follows to all entries, and narrows them to security events', async () => {
  const organization = await service.organization()
  const { id } = (await organization.send('POST', '/v1/people', { external_id: 'ada', first_name: 'Ada' })).body.data
  const support = service.sender(await service.tokenFor(organization.key, 'people:read', 'support'))
  await support('GET', '/v1/people/ada')
  await support('GET', '/v1/clients')
  const shop = service.sender(await service.tokenFor(organization.key, 'people:read', 'shop'))
  for (let look = 0; look < 6; look += 1) await shop('GET', '/v1/people/ada')
  await openPerson(organization, 'ada', async page => {
    const seenBy = page.getByRole('region', { name: 'Seen by' })
    await seenBy.getByRole('rowheader', { name: 'support' }).waitFor()
    expect(await seenBy.getByRole('rowheader', { name: 'shop' }).count()).toBe(1)
    await seenBy.getByRole('link', { name: 'All entries of this person' }).click()
    await page.getByRole('rowheader', { name: 'support' }).waitFor()
    expect(await page.getByLabel('Person or record').inputValue()).toBe(id)
    const downloading = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Export' }).click()
    expect((await downloading).suggestedFilename()).toBe('access-log.ndjson')
    await page.getByLabel('Person or record').fill('')
    await page.goto(`${service.address}/console/access-log?kind=security`)
    await page.getByText('Access refused').waitFor()
    await page.getByText('Signed in', { exact: true }).first().waitFor()
  })
})

it('a session without the scope has neither the page nor the section', async () => {
  const organization = await service.organization()
  await organization.send('POST', '/v1/people', { external_id: 'ada' })
  await open(
    organization,
    '/people/ada',
    async page => {
      await page.getByRole('heading', { level: 1 }).waitFor()
      expect(await page.getByText('Seen by').count()).toBe(0)
      expect(await page.getByRole('link', { name: 'Access log' }).count()).toBe(0)
    },
    { scope: 'people:read schema:read' },
  )
})
