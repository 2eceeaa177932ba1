import { Link } from '@tanstack/react-router'
import { useSchema } from '../entity/schema.ts'

/** Where a record belongs, for the line below its title. */
export function RecordPath({ stackKey, recordId }: { stackKey: string; recordId: string }) {
  const stack = useSchema().stacks.find(({ key }) => key === stackKey)
  return (
    <>
      <Link to="/records/$stackKey" params={{ stackKey }}>
        <bdi>{stack?.name ?? stackKey}</bdi>
      </Link>{' '}
      · <code>{recordId}</code>
    </>
  )
}
