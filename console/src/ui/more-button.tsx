import { Button } from './button.tsx'

type MoreButtonProps = {
  query: { hasNextPage: boolean; isFetchingNextPage: boolean; fetchNextPage(): unknown }
  /** What the list shows, for screen readers. */
  name?: string
  children: string
}

/** Reads the next page of a list, if there is one. */
export function MoreButton({
  query: { hasNextPage, isFetchingNextPage, fetchNextPage },
  name,
  children,
}: MoreButtonProps) {
  if (!hasNextPage) return null
  return (
    <div>
      <Button
        onPress={() => fetchNextPage()}
        isPending={isFetchingNextPage}
        {...(name && { 'aria-label': `${children}: ${name}` })}
      >
        {children}
      </Button>
    </div>
  )
}
