import { useInfiniteQuery } from '@tanstack/react-query'
import { Fragment } from 'react'
import { client } from '../app/client.ts'
import { isWhole } from '../app/field-rights.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { useWrite } from '../app/write.ts'
import { nameOf } from '../entity/address.ts'
import { EntityLink } from '../entity/entity-link.tsx'
import { Button } from '../ui/button.tsx'
import { Problem } from '../ui/notice.tsx'
import { Section } from '../ui/page.tsx'
import { PagedList } from '../ui/paged-list.tsx'
import { Table } from '../ui/table.tsx'
import { duplicateMessages } from './messages.ts'
import { duplicatesKey, setAsidesQuery } from './queries.ts'

/** The people who were set aside. A button of each entry takes it back. */
export function SetAsideList({ onTakeBack }: { onTakeBack(): void }) {
  const texts = useMessages(duplicateMessages)
  const formats = useFormats()
  const mayWrite = useScope('people:write') && isWhole('people')
  const list = useInfiniteQuery(setAsidesQuery)
  const takeBack = useWrite((id: string) => client.people.takeBackSetAside(id), {
    refresh: [duplicatesKey],
    onSuccess: onTakeBack,
  })
  return (
    <Section title={texts.setAside}>
      {takeBack.error && <Problem error={takeBack.error} />}
      <PagedList query={list} none={<p>{texts.noSetAside}</p>} more={texts.moreSetAside}>
        {rows => (
          <Table
            hasCards
            label={texts.setAside}
            headers={[texts.people, texts.by, texts.at, ...(mayWrite ? [texts.action] : [])]}
          >
            {rows.map(({ id, people, actor, at }) => (
              <tr key={id}>
                <th scope="row">
                  {people.map((person, index) => (
                    <Fragment key={person.id}>
                      {index > 0 && ' · '}
                      <EntityLink owner="people" id={person.id} externalId={person.external_id}>
                        <bdi>{nameOf(person)}</bdi>
                      </EntityLink>
                    </Fragment>
                  ))}
                </th>
                <td data-label={texts.by}>{actor}</td>
                <td data-label={texts.at}>{formats.dateTime(at)}</td>
                {mayWrite && (
                  <td>
                    <Button
                      aria-label={`${texts.takeBack}: ${people.map(nameOf).join(', ')}`}
                      isPending={takeBack.isPending && takeBack.variables === id}
                      onPress={() => takeBack.mutate(id)}
                    >
                      {texts.takeBack}
                    </Button>
                  </td>
                )}
              </tr>
            ))}
          </Table>
        )}
      </PagedList>
    </Section>
  )
}
