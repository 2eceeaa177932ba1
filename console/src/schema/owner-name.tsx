import type { Stack } from '@kith/client'
import { useMessages } from '../app/language.tsx'
import { messages } from './messages.ts'

/** The name of an owner: people, or a stack. */
export function OwnerName({ owner, stacks }: { owner: string; stacks: readonly Stack[] }) {
  const texts = useMessages(messages)
  return <bdi>{owner === 'people' ? texts.people : (stacks.find(({ key }) => key === owner)?.name ?? owner)}</bdi>
}
