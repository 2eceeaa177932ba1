import { newPlainCommand } from './kith-command.ts'
import { formatOf, isJson, withNames } from './print-rows.ts'

export function setAsideCommand(environment: NodeJS.ProcessEnv) {
  const setAside = newPlainCommand(
    environment,
    'set-aside',
    'Sets people aside who look like one and are not: kith duplicates and the API leave their pairs out. It can be taken back.',
  ).examples('set-aside add ada newsletter-17', 'set-aside list')
  setAside
    .add('add', 'Says that no two of these people are the same.')
    .examples('set-aside add ada newsletter-17')
    .argument('<person...>', 'The external identifiers.')
    .option('--ids', 'They are internal identifiers.')
    .atService('people:write', async (client, people, { ids }) => {
      const value = await client.people.setAside(ids ? { ids: people } : { external_ids: people })
      return { value, messages: [`${people.join(', ')} are set aside (${value.id}).`] }
    })
  setAside
    .addList(['id', 'people', 'actor', 'at'], 'list', 'Lists who was set aside, the newest first.')
    .examples('set-aside list')
    .atService('people:read', async ({ people }, options) => {
      const listed = await people.setAsides({ size: 100 }).all()
      return isJson(formatOf(options)) ? listed : listed.map(withNames)
    })
  setAside
    .add('end', 'Takes a set-aside back: its people may be found as duplicates again.')
    .examples('set-aside end 01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e60')
    .argument('<id>', 'The id of the set-aside, as set-aside list shows it.')
    .atService('people:write', async (client, id) => {
      await client.people.takeBackSetAside(id)
      return { value: { id }, messages: [`The set-aside ${id} is taken back.`] }
    })
  return setAside
}
