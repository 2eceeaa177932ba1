import { useInfiniteQuery } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { client } from '../app/client.ts'
import { useMessages } from '../app/language.tsx'
import { useWrite } from '../app/write.ts'
import { Button } from '../ui/button.tsx'
import { MoreButton } from '../ui/more-button.tsx'
import { Notice, Problem } from '../ui/notice.tsx'
import { EmptyState, Loading, Page } from '../ui/page.tsx'
import styles from './duplicates.module.css'
import { Group } from './group.tsx'
import { duplicateMessages } from './messages.ts'
import { duplicatesKey, groupsQuery } from './queries.ts'
import { SetAsideList } from './set-aside-list.tsx'

/** The groups of people who may be one, with the reasons, and who was set aside. */
export function DuplicatesPage() {
  const texts = useMessages(duplicateMessages)
  const list = useInfiniteQuery(groupsQuery)
  const [notice, setNotice] = useState<ReactNode>()
  const groups = list.data?.pages.flatMap(({ items }) => items) ?? []
  return (
    <Page title={texts.duplicates}>
      <p>{texts.advice}</p>
      {notice}
      {list.isPending && <Loading />}
      {list.error && <Problem error={list.error} onRetry={() => list.refetch()} />}
      {list.data && groups.length === 0 && !list.hasNextPage && (
        <EmptyState title={texts.none}>{texts.noneAdvice}</EmptyState>
      )}
      {groups.length > 0 && (
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
      <MoreButton query={list}>{groups.length === 0 ? texts.searchOn : texts.more}</MoreButton>
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
      <div>
        <Button onPress={() => takeBack.mutate()} isPending={takeBack.isPending}>
          {texts.takeBack}
        </Button>
      </div>
    </Notice>
  )
}
