extension String {
    /// With blanks behind it, to so many characters; with `gap` of them where there is no room.
    func padded(to width: Int, gap: Int = 0) -> String { self + blanks(max(gap, width - count)) }

    /// Likewise, with the blanks in front.
    func aligned(right width: Int, gap: Int = 1) -> String { blanks(max(gap, width - count)) + self }
}

func blanks(_ count: Int) -> String { String(repeating: " ", count: max(0, count)) }
