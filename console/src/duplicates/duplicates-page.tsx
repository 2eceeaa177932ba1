import type { DuplicateGroup } from '@kith/client'
import { useInfiniteQuery } from '@tanstack/react-query'
import { Fragment, lazy, type ReactNode, Suspense, useState } from 'react'
import { client, useWrite } from '../app/client.ts'
import { isWhole } from '../app/field-rights.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { nameOf } from '../entity/address.ts'
import { phoneOf } from '../entity/entities.ts'
import { EntityLink } from '../entity/entity-link.tsx'
import { messages as entityMessages } from '../entity/messages.ts'
import { Button } from '../ui/button.tsx'
import { DialogButton } from '../ui/dialog.tsx'
import { EmptyState, Notice, Page, Problem, Section } from '../ui/page.tsx'
import { PagedList } from '../ui/paged-list.tsx'
import { Table } from '../ui/table.tsx'
import styles from './duplicates.module.css'
import { duplicateMessages } from './messages.ts'
import { duplicatesKey, groupsQuery, setAsidesQuery } from './queries.ts'

/** The groups of people who may be the same, with the reasons, and the set-asides. */
export function DuplicatesPage() {
  const texts = useMessages(duplicateMessages)
  const list = useInfiniteQuery(groupsQuery)
  const [notice, setNotice] = useState<ReactNode>()
  const hasGroups = list.data?.pages.some(({ items }) => items.length > 0)
  return (
    <Page title={texts.duplicates}>
      <p>{texts.advice}</p>
      {notice}
      <PagedList
        query={list}
        none={<EmptyState title={texts.none}>{texts.noneAdvice}</EmptyState>}
        more={hasGroups ? texts.more : texts.searchOn}
      >
        {groups => (
          <ul className={styles.groups}>
            {groups.map(group => (
              <Group
                key={group.people.map(({ id }) => id).join(' ') + group.why[0]!.by}
                group={group}
                onNotice={setNotice}
                onSetAside={id => setNotice(<SetAsideNotice key={id} id={id} onEnd={() => setNotice(undefined)} />)}
              />
            ))}
          </ul>
        )}
      </PagedList>
      <SetAsideList onTakeBack={() => setNotice(undefined)} />
    </Page>
  )
}

/** Says that people were set aside, and offers to undo it. */
function SetAsideNotice({ id, onEnd }: { id: string; onEnd(): void }) {
  const texts = useMessages(duplicateMessages)
  const takeBack = useWrite(() => client.people.takeBackSetAside(id), { refresh: [duplicatesKey], onSuccess: onEnd })
  return (
    <Notice kind="success" title={texts.notSameSaid}>
      {takeBack.error && <Problem error={takeBack.error} />}
      <Button onPress={() => takeBack.mutate()} isPending={takeBack.isPending}>
        {texts.takeBack}
      </Button>
    </Notice>
  )
}

const MergeDialog = lazy(async () => ({ default: (await import('../person/merge-dialog.tsx')).MergeDialog }))

type GroupProps = { group: DuplicateGroup; onNotice(notice: ReactNode): void; onSetAside(id: string): void }

/**
 * People who may be the same, with the reasons. The person at the console merges two of them, or declares all of them
 * different.
 */
function Group({ group: { people, size, why }, onNotice, onSetAside }: GroupProps) {
  const texts = useMessages(duplicateMessages)
  const { fields } = useMessages(entityMessages)
  const formats = useFormats()
  const mayWrite = useScope('people:write') && isWhole('people')
  const [chosen, setChosen] = useState({ first: people[0]!.id, second: people[1]!.id })
  const setAside = useWrite(() => client.people.setAside({ ids: people.map(({ id }) => id) }), {
    refresh: [duplicatesKey],
    onSuccess: ({ id }) => onSetAside(id),
  })
  const reason = why.map(({ by, value }) => texts.reasons[by](value)).join(' · ')
  const [stays, merged] = [chosen.first, chosen.second].map(id => people.find(person => person.id === id))
  const choose = (side: 'first' | 'second', id: string) => {
    const isOther = Object.values(chosen).includes(id)
    // The two must be different people, so choosing the other one swaps them.
    setChosen(isOther ? { first: chosen.second, second: chosen.first } : { ...chosen, [side]: id })
  }
  const headers = [fields.first_name, fields.external_id, fields.email, fields.mobile_number, fields.date_of_birth]
  return (
    <li className={styles.group}>
      <h2>
        <bdi>{reason}</bdi>
      </h2>
      <p>
        {people.length < size
          ? texts.shown(formats.number(people.length), formats.number(size))
          : texts.size(size, formats.number(size))}
      </p>
      <Table hasCards label={reason} headers={[...(mayWrite ? [texts.first, texts.second] : []), ...headers]}>
        {people.map(person => (
          <tr key={person.id}>
            {mayWrite &&
              (['first', 'second'] as const).map(side => (
                <td key={side} data-label={texts[side]}>
                  <input
                    type="radio"
                    name={`${people[0]!.id} ${reason} ${side}`}
                    aria-label={`${texts[side]}: ${nameOf(person)}`}
                    checked={chosen[side] === person.id}
                    onChange={() => choose(side, person.id)}
                  />
                </td>
              ))}
            <th scope="row">
              <EntityLink owner="people" id={person.id} externalId={person.external_id}>
                <bdi>{nameOf(person)}</bdi>
              </EntityLink>
            </th>
            <td data-label={fields.external_id}>{person.external_id ?? '—'}</td>
            <td data-label={fields.email}>{person.email ?? '—'}</td>
            <td data-label={fields.mobile_number}>{phoneOf(person) || '—'}</td>
            <td data-label={fields.date_of_birth}>
              {person.date_of_birth === null ? '—' : formats.day(person.date_of_birth)}
            </td>
          </tr>
        ))}
      </Table>
      {mayWrite && (
        <div className="row centered">
          <DialogButton
            look="primary"
            aria-label={`${texts.merge}: ${reason}`}
            dialog={close =>
              stays &&
              merged && (
                <Suspense>
                  <MergeDialog person={stays} with={merged} onClose={close} onShow={() => {}} onNotice={onNotice} />
                </Suspense>
              )
            }
          >
            {texts.merge}
          </DialogButton>
          {people.length === size && (
            <Button
              aria-label={`${texts.notSame}: ${reason}`}
              isPending={setAside.isPending}
              onPress={() => setAside.mutate()}
            >
              {texts.notSame}
            </Button>
          )}
        </div>
      )}
      {setAside.error && <Problem error={setAside.error} />}
    </li>
  )
}

/** The people who were set aside. Each entry has a button that takes it back. */
function SetAsideList({ onTakeBack }: { onTakeBack(): void }) {
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
            headers={[texts.people, texts.by, texts.when, ...(mayWrite ? [texts.action] : [])]}
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
                <td data-label={texts.when}>{formats.dateTime(at)}</td>
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
